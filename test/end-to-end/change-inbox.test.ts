import { issueKey, withKey } from '#test/harness/accounts.js'
import {
  call,
  createInbox,
  mail,
  pagesFrom,
  send,
  type InboxJson,
  type ProblemJson,
} from '#test/harness/client.js'
import { startMayfly, type Mayfly } from '#test/harness/mayfly.js'
import { expectProblem } from '#test/harness/problem.js'
import { byGroup, untilCounted, usageOf } from '#test/harness/usage.js'

type Inbox = InboxJson & { name: string | null; password?: string }

const MINUTE_MS = 60_000
const DAY_MS = 24 * 60 * MINUTE_MS

describe('changing an inbox', () => {
  let mayfly: Mayfly

  beforeAll(async () => {
    mayfly = await startMayfly({ isOneProcess: true, hasAnalytics: true })
  })
  afterAll(() => mayfly.dispose())

  const change = (id: string, body: unknown, headers: Record<string, string> = {}) =>
    call<Inbox & ProblemJson>(mayfly, 'PATCH', `/v1/inboxes/${id}`, { body, headers })
  const read = async (id: string) => (await call<Inbox>(mayfly, 'GET', `/v1/inboxes/${id}`)).body
  const idsOf = async (query: string) => {
    const pages = await pagesFrom<InboxJson>(mayfly, `/v1/inboxes?${query}`)
    return pages.flatMap(({ body }) => body.map(({ id }) => id))
  }
  const historyOf = async (id: string) =>
    (await call<{ type: string }[]>(mayfly, 'GET', `/v1/inboxes/${id}/history`)).body.map(({ type }) => type)

  it('answers with the inbox as it is then, and is in its history', async () => {
    const before = (await createInbox(mayfly, { name: 'old', labels: { run: '1' } })) as Inbox
    const answer = await change(before.id, { duration: '2h', name: 'new', labels: {} })
    expect(answer.status).toBe(200)
    const expires_at = new Date(Date.parse(before.created_at) + 120 * MINUTE_MS).toISOString()
    expect(answer.body).toEqual({ ...before, duration: '2h', name: 'new', labels: {}, expires_at })
    expect(await read(before.id)).toEqual(answer.body)
    expect((await change(before.id, { name: null })).body).toEqual({ ...answer.body, name: null })
    expect(await historyOf(before.id)).toEqual(['inbox.created', 'inbox.changed', 'inbox.changed'])
  })

  it('changes nothing if nothing is sent, or nothing new', async () => {
    const before = (await createInbox(mayfly, { name: 'same', labels: { run: '1' } })) as Inbox
    for (const body of [undefined, {}, { name: 'same' }, { labels: { run: '1' } }]) {
      const { status, body: after } = await change(before.id, body)
      expect({ status, after }).toEqual({ status: 200, after: before })
    }
    expect(await historyOf(before.id)).toEqual(['inbox.created'])
  })

  it.each([
    [{ duration: '30s' }, '/duration'],
    [{ duration: null }, '/duration'],
    [{ duration: '31d' }, '/duration'],
    [{ name: 7 }, '/name'],
    [{ labels: null }, '/labels'],
    [{ labels: { 'a:b': '1' } }, '/labels'],
    [{ labels: { ['👋'.repeat(64)]: '👋'.repeat(128), run: '👋'.repeat(64) } }, '/labels'],
    [{ password_protected: true }, '/password_protected'],
  ])('refuses %j', async (body, pointer) => {
    const { id } = await createInbox(mayfly)
    const problem = expectProblem(await change(id, body), { status: 400, code: 'invalid-request' })
    expect(problem.errors).toEqual([expect.objectContaining({ pointer })])
  })

  it('allows the retention of the plan, and is repeatable', async () => {
    const { id, created_at } = await createInbox(mayfly)
    const expires_at = new Date(Date.parse(created_at) + 30 * DAY_MS).toISOString()
    for (let times = 0; times < 2; times += 1) {
      expect(await change(id, { duration: '30d' })).toMatchObject({ status: 200, body: { expires_at } })
    }
    expect(await historyOf(id)).toEqual(['inbox.created', 'inbox.changed'])
  })

  it('needs the scope inboxes, and an inbox that exists', async () => {
    const { id } = await createInbox(mayfly)
    for (const scope of ['read', 'audit', 'admin']) {
      const key = await issueKey(mayfly, { scopes: [scope], environment: 'development' })
      const answer = await call(withKey(mayfly, key), 'PATCH', `/v1/inboxes/${id}`, { body: { name: 'x' } })
      expectProblem(answer, { status: 403, code: 'missing-scope' })
    }
    const elsewhere = withKey(mayfly, await issueKey(mayfly, { environment: 'elsewhere' }))
    const answer = await call(elsewhere, 'PATCH', `/v1/inboxes/${id}`, { body: { name: 'x' } })
    expectProblem(answer, { status: 404, code: 'not-found' })
    await call(mayfly, 'DELETE', `/v1/inboxes/${id}`)
    expectProblem(await change(id, { name: 'x' }), { status: 410, code: 'inbox-deleted' })
  })

  it('needs the password of a protected inbox, which stays the same', async () => {
    const key = await issueKey(mayfly, { scopes: ['inboxes'] })
    const target = withKey(mayfly, key)
    const { id, password = '' } = (await createInbox(target, { password_protected: true })) as Inbox
    const rename = (headers: Record<string, string>) =>
      call<Inbox>(target, 'PATCH', `/v1/emails/${id}`, { body: { name: 'renamed' }, headers })
    expectProblem(await rename({}), { status: 403, code: 'inbox-password-required' })
    const headers = { 'mayfly-inbox-password': password }
    expect(await rename(headers)).toMatchObject({ status: 200, body: { name: 'renamed' } })
    expect((await call(target, 'GET', `/v1/inboxes/${id}/messages`)).status).toBe(403)
    expect((await call(target, 'GET', `/v1/inboxes/${id}/messages`, { headers })).status).toBe(200)
  })

  it('makes every change of concurrent requests', async () => {
    const { id } = await createInbox(mayfly)
    const bodies = [{ name: 'concurrent' }, { labels: { run: '1' } }, { duration: '3h' }]
    const answers = await Promise.all(bodies.map((body) => change(id, body)))
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 200])
    for (const [index, body] of bodies.entries()) expect(answers[index]?.body).toMatchObject(body)
    expect(await read(id)).toMatchObject({ name: 'concurrent', labels: { run: '1' }, duration: '3h' })
  })

  it('moves the inbox to its new labels, in the list and in the usage of later mail', async () => {
    const { id, address } = await createInbox(mayfly, { labels: { story: 'before', stays: 'yes' } })
    await change(id, { labels: { story: 'after', stays: 'yes' } })
    expect(await idsOf('label=story:before')).toEqual([])
    expect(await idsOf('label=story:after')).toEqual([id])
    expect(await idsOf('label=stays:yes')).toEqual([id])
    await send(mayfly, address, mail('counted'))
    const mails = async (value: string) =>
      byGroup(await usageOf(mayfly, { group_by: 'label.story' })).get(value)?.mails ?? 0
    expect(
      await untilCounted(
        () => mails('after'),
        (count) => count > 0,
      ),
    ).toBe(1)
    expect(await mails('before')).toBe(0)
    await call(mayfly, 'DELETE', `/v1/inboxes/${id}`)
    expect(await idsOf('label=story:after&state=deleted')).toEqual([id])
  })
})
