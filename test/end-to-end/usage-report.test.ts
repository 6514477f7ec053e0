import { withKey, issueKey, openAccount } from '#test/harness/accounts.js'
import { call, createInbox, mail, send, type MessageJson, type Target } from '#test/harness/client.js'
import { signIn } from '#test/harness/console.js'
import { listen } from '#test/harness/event-stream.js'
import { startMayfly, type Mayfly } from '#test/harness/mayfly.js'
import { expectProblem } from '#test/harness/problem.js'
import { until } from '#test/harness/until.js'
import { reportOf, untilCounted, type UsageReportJson } from '#test/harness/usage.js'

type Received = MessageJson & { received_at: string }

/** A mail with a Message-ID. */
const mailWithId = (id: string) => `Message-ID: <${id}@app.example>\r\n${mail(`Mail ${id}`)}`

const sumBy = <Name extends string>(rows: readonly Record<Name, number>[], name: Name) =>
  rows.reduce((sum, row) => sum + row[name], 0)

describe('the report of a load run', () => {
  let mayfly: Mayfly
  let admin: Target
  let worker: Target

  beforeAll(async () => {
    mayfly = await startMayfly({ isOneProcess: true, hasAnalytics: true })
    const limits = { max_messages: 2 }
    admin = withKey(mayfly, (await openAccount(mayfly, { plan: 'enterprise', limits })).key)
    worker = withKey(mayfly, await issueKey(admin))
  })
  afterAll(() => mayfly.dispose())

  it('counts received, duplicate, refused and read mails', async () => {
    let requests = 0
    const request = <Body>(method: string, path: string) => {
      requests += 1
      return call<Body>(worker, method, path)
    }
    const make = (labels: object) => {
      requests += 1
      return createInbox(worker, { labels })
    }
    const labels = { run: '42' }
    const [full, second, ended] = [await make(labels), await make(labels), await make(labels)]
    const source = mailWithId('one')
    await send(mayfly, full.address, source)
    // Like a sender that did not get the 250.
    await send(mayfly, full.address, source)
    await expect(send(mayfly, full.address, mailWithId('two'))).rejects.toThrow(/552 5\.2\.2 /)
    // The same mail to another inbox is not a duplicate.
    await send(mayfly, second.address, source)
    expect((await request('DELETE', `/v1/inboxes/${ended.id}`)).status).toBe(200)
    await expect(send(mayfly, ended.address, source)).rejects.toThrow(/550 5\.1\.1 /)
    // Another run does not count.
    const other = await createInbox(worker, { labels: { run: '421' } })
    await send(mayfly, other.address, source)

    const visible = await untilCounted(
      () => reportOf(worker, 'run:42'),
      ({ inboxes, mails, refusals, visible_ms: visibleMs }) =>
        inboxes >= 3 && mails >= 3 && refusals >= 2 && visibleMs !== null,
    )
    expect(visible).toMatchObject({ inboxes: 3, mails: 3, duplicates: 1, refusals: 2, read: 0 })
    expect(visible.first_read_ms).toBeNull()
    // A list in the console is no reading.
    const session = await signIn(admin)
    const listed = await call<MessageJson[]>(await session.target('staging'), 'GET', '/v1/messages')
    expect(listed.body).toHaveLength(4)

    const list = await request<Received[]>('GET', `/v1/inboxes/${full.id}/messages`)
    const [first, twice] = list.body
    if (first === undefined || twice === undefined) throw new Error(`${list.body.length} messages`)
    // Read again: only the first read counts.
    await request('GET', `/v1/inboxes/${full.id}/messages/${first.id}`)
    const report = await untilCounted(
      () => reportOf(worker, 'run:42'),
      (found) => found.read >= 2 && found.requests >= requests,
    )
    const { visible_ms: visibleMs, first_read_ms: firstReadMs, accept_ms: acceptMs } = report
    expect(report).toMatchObject({
      ...{ requests, refusals: 2, inboxes: 3, mails: 3, bytes: 3 * source.length, duplicates: 1, read: 2 },
      ...{ inboxes_without_mail: 1, first_mail_at: first.received_at },
    })
    const lastMailAt = Date.parse(report.last_mail_at ?? '')
    expect(lastMailAt).toBeGreaterThanOrEqual(Date.parse(twice.received_at))
    const seconds = (lastMailAt - Date.parse(first.received_at)) / 1_000
    expect(report.mails_per_second).toBeCloseTo(2 / seconds, 2)
    const { timeline } = report
    expect(sumBy(timeline, 'mails')).toBe(3)
    expect(sumBy(timeline, 'bytes')).toBe(3 * source.length)
    expect(timeline[0]?.from).toBe(`${first.received_at.slice(0, 19)}.000Z`)
    expect(acceptMs?.max).toBeGreaterThanOrEqual(acceptMs?.p99 ?? Infinity)
    for (const quantiles of [visibleMs, firstReadMs, acceptMs]) {
      if (quantiles === null) throw new Error('the report has no latencies')
      expect(quantiles.p99).toBeGreaterThanOrEqual(quantiles.p50)
    }
    // They were read after the list was requested, some time after their arrival.
    expect(firstReadMs?.p50).toBeGreaterThan(visibleMs?.p50 ?? Infinity)

    const figuresOf = ({ counted_up_to: _, ...figures }: UsageReportJson) => figures
    expect(figuresOf(await reportOf(admin, 'run:42'))).toEqual(figuresOf(report))
    const nothing = {
      ...{ requests: 0, refusals: 0, inboxes: 0, mails: 0, bytes: 0, duplicates: 0, read: 0 },
      ...{ inboxes_without_mail: 0, accept_ms: null, visible_ms: null, first_read_ms: null },
      ...{ first_mail_at: null, last_mail_at: null, mails_per_second: null, timeline: [] },
    }
    const [another, elsewhere] = [await issueKey(admin), (await openAccount(mayfly)).key]
    expect(figuresOf(await reportOf(withKey(mayfly, another), 'run:42'))).toEqual(nothing)
    expect(figuresOf(await reportOf(withKey(mayfly, elsewhere), 'run:42'))).toEqual(nothing)
    expect(figuresOf(await reportOf(worker, "run:42' OR 1 = 1 --"))).toEqual(nothing)
    expect(await reportOf(worker, 'run:42', { to: list.body[0]?.received_at ?? '' })).toMatchObject({
      mails: 0,
    })
  })

  it('has the time up to which it is complete', async () => {
    const target = withKey(mayfly, await issueKey(admin))
    const labels = { run: 'complete' }
    const addresses = await Promise.all(
      Array.from({ length: 4 }, async () => (await createInbox(target, { labels })).address),
    )
    await Promise.all([...addresses, ...addresses].map((address) => send(mayfly, address, mail('counted'))))
    const ended = Date.now()
    const complete = await until(
      'everything to be counted',
      async () => {
        const report = await reportOf(target, 'run:complete')
        return Date.parse(report.counted_up_to ?? '') > ended ? report : null
      },
      15_000,
    )
    // The first report with that time has all events of every partition.
    expect(complete).toMatchObject({ requests: 4, inboxes: 4, mails: 8, inboxes_without_mail: 0 })
    expect(Date.parse(complete.counted_up_to ?? '')).toBeLessThan(Date.now())
  })

  it('counts long waits and event streams for the run of their inbox', async () => {
    const { id, address } = await createInbox(worker, { labels: { run: 'waits' } })
    const wait = await call(worker, 'GET', `/v1/inboxes/${id}/messages/wait?timeout=1`)
    expectProblem(wait, { status: 404, code: 'no-matching-message' })
    const stream = await listen(worker, `/v1/inboxes/${id}/events`)
    await send(mayfly, address, mail('streamed'))
    await stream.count(1)
    stream.close()
    const report = await untilCounted(
      () => reportOf(worker, 'run:waits'),
      ({ requests }) => requests >= 3,
    )
    expect(report.requests).toBe(3)
  })

  it.each([
    { query: '', at: 'label' },
    { query: 'label=', at: 'label' },
    { query: 'label=run', at: 'label' },
    { query: 'label=run:42&interval=day', at: 'interval' },
    { query: 'label=run:42&from=2026-11-21', at: 'from' },
  ])('is refused for ?$query', async ({ query, at }) => {
    const answer = await call(worker, 'GET', `/v1/usage/report?${query}`)
    expectProblem(answer, { status: 400, code: 'invalid-request', at: [{ parameter: at }] })
  })
})
