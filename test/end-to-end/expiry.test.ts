import {
  call,
  create,
  createInbox,
  inboxWith,
  mail,
  messagesOf,
  only,
  pagesFrom,
  send,
  type InboxJson,
} from '#test/harness/client.js'
import { listen } from '#test/harness/event-stream.js'
import { pathsOf } from '#test/harness/inbox-paths.js'
import { makeFolder, startWithClock, type MayflyWithClock } from '#test/harness/mayfly-with-clock.js'
import { expectProblem } from '#test/harness/problem.js'
import { until } from '#test/harness/until.js'

/** A wait that begins this long before an expiry would look again by itself 10 s after its beginning. */
const LEFT_MS = 2_000
const LATE_WITHIN_MS = 7_500

/** The shortest duration is a minute. The clock runs ahead, so that the tests do not wait that long. */
describe('the expiry', () => {
  let folder: Awaited<ReturnType<typeof makeFolder>>
  let mayfly: MayflyWithClock
  let aheadMs = 0

  beforeAll(async () => {
    folder = await makeFolder()
    mayfly = await startWithClock(folder.path, Date.now(), { MAYFLY_COUNT_USAGE: 'false' })
    await mayfly.runAhead(aheadMs)
  })
  afterAll(async () => {
    await mayfly.close()
    await folder.remove()
  })

  const now = () => Date.now() + aheadMs
  async function skipTo(ms: number): Promise<void> {
    aheadMs += ms - now()
    await mayfly.runAhead(aheadMs)
  }

  const timed = async <Answer>(answer: Promise<Answer>, expiresAtMs: number) => ({
    answer: await answer,
    lateMs: now() - expiresAtMs,
  })
  function expectInTime(lateMs: number): void {
    expect(lateMs).toBeGreaterThanOrEqual(0)
    expect(lateMs).toBeLessThan(LATE_WITHIN_MS)
  }

  it('of an inbox shows on every path as soon as its time is over', async () => {
    const labels = { story: 'expiry' }
    const inbox = await createInbox(mayfly, { duration: '1m', labels })
    const { id, address, created_at, expires_at } = inbox
    const expiresAtMs = Date.parse(expires_at)
    expect(expiresAtMs - Date.parse(created_at)).toBe(60_000)
    await send(mayfly, address, mail('short life'))
    const { id: messageId } = only(await messagesOf(mayfly, id, 1))

    await skipTo(expiresAtMs - LEFT_MS)
    const wait = call(mayfly, 'GET', `/v1/inboxes/${id}/messages/wait?subject=never&timeout=55`)
    const waiting = timed(wait, expiresAtMs)
    const statusOfInbox = async () => (await call(mayfly, 'GET', `/v1/inboxes/${id}`)).status
    await until('the end', async () => (await statusOfInbox()) === 410)
    expectInTime(now() - expiresAtMs)
    const waited = await waiting
    expectProblem(waited.answer, { status: 410, code: 'inbox-expired' })
    expectInTime(waited.lateMs)

    for (const [method, path] of [...pathsOf(id, messageId), ['DELETE', `/v1/inboxes/${id}`] as const]) {
      const problem = expectProblem(await call(mayfly, method, path), { status: 410, code: 'inbox-expired' })
      expect(problem.detail).toMatch(/^The inbox inb_\w+ expired at /)
      expect(problem).toMatchObject({ ended_at: expires_at, ended_by: null })
    }
    await expect(send(mayfly, address, mail('too late'))).rejects.toThrow(/550/)
    const expired = await pagesFrom<InboxJson>(mayfly, '/v1/inboxes?state=expired&label=story:expiry')
    expect(expired.flatMap(({ body }) => body)).toEqual([
      { id, address, state: 'expired', labels, created_at, ended_at: expires_at, message_count: 1 },
    ])
    expect((await call(mayfly, 'GET', '/v1/inboxes?label=story:expiry')).body).toEqual([])
  })

  it('that is changed moves for the inbox, its mail, its waits and its streams', async () => {
    const change = (id: string, duration: string) =>
      call<InboxJson>(mayfly, 'PATCH', `/v1/inboxes/${id}`, { body: { duration } })
    const longer = await createInbox(mayfly, { duration: '1m' })
    await send(mayfly, longer.address, mail('before'))
    await messagesOf(mayfly, longer.id, 1)
    const stream = await listen(mayfly, `/v1/inboxes/${longer.id}/events`)
    const shorter = await inboxWith(mayfly, mail('before'))
    expect((await change(longer.id, '1h')).status).toBe(200)
    const { body: shortened } = await change(shorter.id, '1m')

    const expiresAtMs = Date.parse(shortened.expires_at)
    await skipTo(expiresAtMs - LEFT_MS)
    const path = `/v1/inboxes/${shorter.id}/messages/wait?subject=never&timeout=55`
    const waited = await timed(call(mayfly, 'GET', path), expiresAtMs)
    expectProblem(waited.answer, { status: 410, code: 'inbox-expired' })
    expectInTime(waited.lateMs)
    expectProblem(await change(shorter.id, '1h'), { status: 410, code: 'inbox-expired' })

    await until('the first expiry', () => now() > Date.parse(longer.expires_at) + 2_000)
    const [before] = await messagesOf(mayfly, longer.id, 1)
    const raw = await call<string>(mayfly, 'GET', before?.raw_url ?? '')
    expect({ status: raw.status, body: raw.body }).toEqual({ status: 200, body: mail('before') })
    await send(mayfly, longer.address, mail('after'))
    const events = await stream.count(1)
    expect(events).toMatchObject([{ event: 'message.received', data: { data: { subject: 'after' } } }])
    stream.close()
  })

  it('of an inbox token ends its waits and streams, while the inbox goes on', async () => {
    const issue = (inboxId: string, body = {}) =>
      create<{ token: string; expires_at: string }>(mayfly, `/v1/inboxes/${inboxId}/tokens`, body)
    const { id } = await createInbox(mayfly)
    const token = await issue(id, { expires_in: '1m' })
    const short = await createInbox(mayfly, { duration: '1m' })
    const tokenOfShort = await issue(short.id)
    const target = { ...mayfly, apiKey: token.token }
    const path = `/v1/inboxes/${id}`
    const stream = await listen(target, `${path}/events`)
    const expiresAtMs = Date.parse(token.expires_at)
    await skipTo(expiresAtMs - LEFT_MS)
    const waited = await timed(call(target, 'GET', `${path}/messages/wait?timeout=55`), expiresAtMs)
    expectInTime(waited.lateMs)
    expectProblem(waited.answer, { status: 401, code: 'revoked-api-key', detail: /expired at/ })
    expect(await stream.end()).toEqual([])
    expect((await call(mayfly, 'GET', path)).status).toBe(200)
    expect((await call(mayfly, 'GET', `${path}/tokens`)).body).toEqual([])
    await until('the end of the short inbox', () => now() > Date.parse(short.expires_at))
    const ended = await call({ ...mayfly, apiKey: tokenOfShort.token }, 'GET', `/v1/inboxes/${short.id}`)
    expectProblem(ended, { status: 410, code: 'inbox-expired' })
  })
})
