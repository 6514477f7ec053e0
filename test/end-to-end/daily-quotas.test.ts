import { issueKey, openAccount, withKey } from '#test/harness/accounts.js'
import { call, createInbox, mail, messagesOf, send, type Answer, type Target } from '#test/harness/client.js'
import { endpointsPerTest, type HttpEndpoint } from '#test/harness/endpoint.js'
import { makeFolder, startWithClock, type MayflyWithClock } from '#test/harness/mayfly-with-clock.js'
import { expectProblem } from '#test/harness/problem.js'
import { answerToRcpt } from '#test/harness/smtp.js'
import { until } from '#test/harness/until.js'
import { deliveriesOf, registerWebhook } from '#test/harness/webhooks.js'

const DAY_MS = 86_400_000
const HOUR_MS = 3_600_000

describe('daily quotas', () => {
  const endpoints = endpointsPerTest()
  let folder: Awaited<ReturnType<typeof makeFolder>>
  let mayfly: MayflyWithClock

  beforeAll(async () => {
    folder = await makeFolder()
    const env = { MAYFLY_COUNT_USAGE: 'false', MAYFLY_WEBHOOK_ALLOW_PRIVATE: 'true' }
    mayfly = await startWithClock(folder.path, Date.now(), env)
    // An hour before midnight.
    await mayfly.skip((2 * DAY_MS - (Date.now() % DAY_MS) - HOUR_MS) % DAY_MS)
  })
  afterAll(async () => {
    await mayfly.close()
    await folder.remove()
  })

  /** An account with the key of its owner and one of a developer. */
  async function accountWith(limits: object): Promise<{ admin: Target; own: Target }> {
    const { key } = await openAccount(mayfly, { plan: 'enterprise', limits })
    const admin = withKey(mayfly, key)
    return { admin, own: withKey(mayfly, await issueKey(admin)) }
  }

  const createMany = (target: Target, count: number) =>
    call(target, 'POST', '/v1/inboxes/bulk', { body: { count, duration: '2d' } })

  const quotasOf = async (target: Target, ...names: string[]) => {
    const { body } = await call<{ name: string; used: number; resets_at: string | null }[]>(
      ...([target, 'GET', '/v1/quotas'] as const),
    )
    return body.filter(({ name }) => names.includes(name)).map(({ used }) => used)
  }

  function expectExceeded(answer: Answer<unknown>, members: object): void {
    expect(expectProblem(answer, { status: 429, code: 'quota-exceeded' })).toMatchObject(members)
    const seconds = Number(answer.headers.get('retry-after'))
    expect([seconds > 3_000, seconds <= 3_600]).toEqual([true, true])
  }

  it('count what was created and received since midnight UTC, also what has ended', async () => {
    const { admin, own } = await accountWith({ max_inboxes_per_day: 4, max_messages_per_day: 2 })
    const inbox = await createInbox(own, { duration: '2d' })
    const gone = await createInbox(own)
    await send(own, gone.address, mail('one'))
    await messagesOf(own, gone.id, 1)
    expect((await call(own, 'DELETE', `/v1/inboxes/${gone.id}`)).status).toBe(200)
    expectExceeded(await createMany(own, 3), { quota: 'inboxes-per-day', limit: 4, used: 2 })
    expect((await createMany(own, 2)).status).toBe(201)
    expectExceeded(await call(own, 'POST', '/v1/inboxes'), { quota: 'inboxes-per-day', used: 4 })

    const inject = () =>
      call(own, 'POST', `/v1/inboxes/${inbox.id}/messages`, {
        ...{ body: Buffer.from(mail('two')), headers: { 'content-type': 'message/rfc822' } },
      })
    expect((await inject()).status).toBe(201)
    expectExceeded(await inject(), { quota: 'messages-per-day', limit: 2, used: 2 })
    // SMTP reads what the API has accepted within a second.
    await until('mail to be refused', async () =>
      (await answerToRcpt(own, inbox.address)).startsWith('452 4.2.2'),
    )
    expect(await quotasOf(admin, 'inboxes', 'inboxes-per-day', 'messages-per-day')).toEqual([3, 4, 2])

    await mayfly.skip(HOUR_MS)
    expect(await quotasOf(admin, 'inboxes-per-day', 'messages-per-day')).toEqual([0, 0])
    await send(own, inbox.address, mail('four'))
    await messagesOf(own, inbox.id, 2)
    expect((await createMany(own, 4)).status).toBe(201)
    expect(await quotasOf(admin, 'inboxes', 'inboxes-per-day', 'messages-per-day')).toEqual([7, 4, 1])
    await mayfly.skip(23 * HOUR_MS)
  })

  it('can be set for an environment and a key', async () => {
    const { admin, own } = await accountWith({})
    const body = { limit: 1, environment: 'staging' }
    const answer = await call(admin, 'PUT', '/v1/quotas/inboxes-per-day', { body })
    expect(answer).toMatchObject({ status: 200, body: { ...body, used: 0 } })
    await createInbox(own)
    const refused = { quota: 'inboxes-per-day', environment: 'staging', key_id: null, limit: 1, used: 1 }
    expectExceeded(await call(own, 'POST', '/v1/inboxes'), refused)
  })

  describe('and others', () => {
    let endpoint: HttpEndpoint

    beforeEach(async () => {
      endpoint = await endpoints.start()
    })

    const bodies = () =>
      endpoint.requests.map(({ body }) => JSON.parse(body) as { type: string; data: Record<string, unknown> })
    const register = (target: Target) =>
      registerWebhook(target, '/v1/webhooks', { url: endpoint.url, events: ['quota.reached'] })
    const notices = (count: number) =>
      until(`${count} notices`, () => Promise.resolve(endpoint.requests.length >= count)).then(bodies)

    it('are announced to the webhooks of the account at 80 and 100 percent, once a day', async () => {
      const { admin, own } = await accountWith({ max_inboxes_per_day: 10, max_members: 1 })
      const elsewhere = withKey(
        mayfly,
        await issueKey(admin, { environment: 'production', scopes: ['admin'] }),
      )
      const webhook = await register(elsewhere)
      await createMany(own, 7)
      await createMany(own, 1)
      await createMany(own, 1)
      const [first] = await notices(1)
      expect(first).toMatchObject({ type: 'quota.reached' })
      const ofDay = { name: 'inboxes-per-day', environment: null, key_id: null, limit: 10 }
      expect(first?.data).toEqual({
        ...{ ...ofDay, used: first?.data.used, percent: 80 },
        resets_at: expect.stringMatching(/T00:00:00\.000Z$/) as string,
      })
      expect([8, 9]).toContain(first?.data.used)
      await createMany(own, 1)
      await call(admin, 'POST', '/v1/invitations', { body: { email: 'a@x.example', role: 'viewer' } })
      const all = await notices(3)
      const about = all.map(({ data }) => `${String(data.name)} ${String(data.percent)}`).sort()
      expect(about).toEqual(['inboxes-per-day 100', 'inboxes-per-day 80', 'members 100'])
      expect(await deliveriesOf(elsewhere, webhook.id)).toMatchObject(
        Array.from({ length: 3 }, () => ({ event: 'quota.reached', quota: expect.any(String) as string })),
      )

      await mayfly.skip(DAY_MS)
      await createMany(own, 8)
      expect((await notices(5)).slice(3).map(({ data }) => data.name)).toEqual(
        expect.arrayContaining(['inboxes-per-day', 'members']),
      )
    })

    it('are announced when a limit is lowered or a webhook is added', async () => {
      const { admin, own } = await accountWith({})
      await createMany(own, 5)
      await register(admin)
      await call(admin, 'PUT', '/v1/quotas/inboxes', { body: { limit: 6, environment: 'staging' } })
      const [lowered] = await notices(1)
      const data = {
        name: 'inboxes',
        environment: 'staging',
        limit: 6,
        used: 5,
        percent: 80,
        resets_at: null,
      }
      expect(lowered?.data).toMatchObject(data)
      const other = await endpoints.start()
      await registerWebhook(admin, '/v1/webhooks', { url: other.url, events: ['quota.reached'] })
      await until('the notice of the new webhook', () => Promise.resolve(other.requests.length === 1))
      expect(endpoint.requests).toHaveLength(1)
    })
  })
})
