import { idFromBytes } from '#libs/domain/ids/typeid.js'
import { withKey, issueKey, openAccount, type KeyJson, type NewKeyJson } from '#test/harness/accounts.js'
import { call, createInbox, mail, send, type Target } from '#test/harness/client.js'
import { startMayfly, type Mayfly } from '#test/harness/mayfly.js'
import { expectProblem } from '#test/harness/problem.js'
import { byGroup, sumOf, untilCounted, usageOf, type UsageTotalsJson } from '#test/harness/usage.js'

const UNIT_MS = { second: 1_000, minute: 60_000, hour: 3_600_000, day: 86_400_000 }
const DAY_MS = UNIT_MS.day
const NOTHING: UsageTotalsJson = { requests: 0, refusals: 0, inboxes: 0, mails: 0, bytes: 0 }
/** Would break, or be executed in, a query that is built by concatenation. */
const HOSTILE = `') OR 1 = 1 -- {account:String} \\N \\' "\u202e😀 %s`

describe('usage', () => {
  let mayfly: Mayfly
  let began: Date
  let admin: Target
  let adminKeyId: string
  /** A key that made requests and has inboxes with mail. */
  let worker: NewKeyJson
  /** Keys of the same account and of another one, without requests. */
  let idle: NewKeyJson
  let stranger: Target
  let done: UsageTotalsJson
  /** Inboxes by the label `run`. */
  let mails: Record<'first' | 'second' | 'third', string>

  beforeAll(async () => {
    mayfly = await startMayfly({ hasAnalytics: true })
    began = new Date()
    const [account, other] = [await openAccount(mayfly), await openAccount(mayfly)]
    admin = withKey(mayfly, account.key)
    adminKeyId = account.key?.id ?? ''
    stranger = withKey(mayfly, other.key)
    worker = await issueKey(admin, { environment: 'staging' })
    idle = await issueKey(admin, { environment: 'production' })
    const target = withKey(mayfly, worker)
    const first = await createInbox(target, { labels: { run: '42', story: HOSTILE } })
    const second = await createInbox(target, { labels: { run: '43' } })
    const third = await createInbox(target)
    mails = { first: mail('one'), second: mail('two', 'x'.repeat(5_000)), third: mail('three') }
    await send(mayfly, [first.address, second.address], mails.first)
    await send(mayfly, first.address, mails.second)
    await send(mayfly, third.address, mails.third)
    for (const path of [`/v1/inboxes/${first.id}`, '/v1/inboxes', '/v1/inboxes/nobody', '/v1/keys']) {
      await call(target, 'GET', path)
    }
    const bytes = 2 * mails.first.length + mails.second.length + mails.third.length
    done = { requests: 7, refusals: 0, inboxes: 3, mails: 4, bytes }
  })
  afterAll(() => mayfly.dispose())

  const ofWorker = async () => byGroup(await usageOf(admin, { group_by: 'key' })).get(worker.id) ?? NOTHING
  const workerIsCounted = () => untilCounted(ofWorker, (sum) => sum.requests >= 7 && sum.mails >= 4)

  it('counts the requests of a key and the mail to its inboxes within seconds', async () => {
    expect(await workerIsCounted()).toEqual(done)
  })

  it('has the latencies of requests and of mail until it is visible', async () => {
    const rows = await untilCounted(
      () => usageOf(admin, { group_by: 'environment', interval: 'day' }),
      (found) => found.some(({ group, visible_ms }) => group === 'staging' && visible_ms !== null),
    )
    for (const { group, request_ms: requestMs, visible_ms: visibleMs } of rows) {
      if (requestMs === null) throw new Error('usage has no latencies of requests')
      for (const { p50, p95, p99 } of [requestMs, visibleMs ?? { p50: 1, p95: 1, p99: 1 }]) {
        expect(p50).toBeGreaterThan(0)
        expect(p95).toBeGreaterThanOrEqual(p50)
        expect(p99).toBeGreaterThanOrEqual(p95)
        expect(p99).toBeLessThan(60_000)
      }
      if (group !== 'staging') expect(visibleMs).toBeNull()
    }
  })

  it.each(['second', 'minute', 'hour', 'day'] as const)(
    'has the same totals by %s, within its bounds',
    async (interval) => {
      await workerIsCounted()
      const [from, to] = [began.toISOString(), new Date(Date.now() + 60_000).toISOString()]
      const rows = await usageOf(admin, { interval, from, to, group_by: 'key' })
      expect(byGroup(rows).get(worker.id)).toEqual(done)
      for (const row of rows) {
        const [start, end] = [Date.parse(row.from), Date.parse(row.to)]
        // Whole intervals in UTC, except the first and last ones.
        if (row.from !== from) expect(start % UNIT_MS[interval]).toBe(0)
        if (row.to !== to) expect(end % UNIT_MS[interval]).toBe(0)
        expect(row.from >= from && row.to <= to && start < end).toBe(true)
        expect(end - start).toBeLessThanOrEqual(UNIT_MS[interval])
      }
      expect(rows.map((row) => row.from)).toEqual(rows.map((row) => row.from).toSorted())
      const before = new Date(began.getTime() - 3_600_000).toISOString()
      expect(await usageOf(admin, { interval, from: before, to: from })).toEqual([])
    },
  )

  it('is grouped by key, environment and label', async () => {
    await workerIsCounted()
    expect(byGroup(await usageOf(admin, { group_by: 'environment' })).get('staging')).toEqual(done)
    const runs = byGroup(await usageOf(admin, { group_by: 'label.run' }))
    const { first, second, third } = mails
    expect(runs.get('42')).toEqual({
      ...{ requests: 2, refusals: 0, inboxes: 1, mails: 2 },
      bytes: first.length + second.length,
    })
    expect(runs.get('43')).toEqual({ ...NOTHING, requests: 1, inboxes: 1, mails: 1, bytes: first.length })
    expect(runs.get(null)).toMatchObject({ inboxes: 1, mails: 1, bytes: third.length })
    expect([...runs.keys()].toSorted()).toEqual(['42', '43', null].toSorted())
    const all = await usageOf(admin)
    expect(all.every(({ group }) => group === null)).toBe(true)
    expect(sumOf(all)).toMatchObject({ inboxes: 3, mails: 4, bytes: done.bytes })
  })

  it('is filtered by labels with any characters', async () => {
    await workerIsCounted()
    const sum = async (labels: readonly string[]) => {
      const query = new URLSearchParams(labels.map((label) => ['label', label] as [string, string]))
      const { status, body } = await call<UsageTotalsJson[]>(admin, 'GET', `/v1/usage?${query.toString()}`)
      expect({ labels, status }).toEqual({ labels, status: 200 })
      return sumOf(body)
    }
    expect(await sum([`story:${HOSTILE}`])).toMatchObject({ inboxes: 1, mails: 2 })
    expect(await sum([`story:${HOSTILE}`, 'run:42'])).toMatchObject({ inboxes: 1, mails: 2 })
    for (const label of [
      'run:4',
      'run:',
      'run:42 ',
      'run:\\N',
      "run:' OR 1 = 1 --",
      'run:\0',
      'run:\n',
      'story:%',
    ]) {
      expect({ label, ...(await sum([label])) }).toEqual({ label, ...NOTHING })
    }
    expect(await sum([`story:${HOSTILE}`, 'run:43'])).toEqual(NOTHING)
    for (const name of ["x'", '\\', '{account}', '__proto__', '%']) {
      const groups = byGroup(await usageOf(admin, { group_by: `label.${name}` }))
      expect({ name, groups: [...groups.keys()] }).toEqual({ name, groups: [null] })
    }
  })

  it('covers the key itself, or the account for scope admin, and never another account', async () => {
    await workerIsCounted()
    const own = byGroup(
      await usageOf(withKey(mayfly, await issueKey(admin, { scopes: ['read'] })), { group_by: 'key' }),
    )
    expect([...own.keys()]).toEqual([])
    const idleSees = await usageOf(withKey(mayfly, idle), { group_by: 'key' })
    expect([...byGroup(idleSees).keys()].filter((id) => id !== idle.id)).toEqual([])
    expect(sumOf(idleSees)).toMatchObject({ inboxes: 0, mails: 0, bytes: 0 })
    const accountWide = byGroup(await usageOf(admin, { group_by: 'key' }))
    expect([...accountWide.keys()]).toEqual(expect.arrayContaining([adminKeyId, worker.id]))
    const ofWorker = (await usageOf(admin, { group_by: 'key' })).find(({ group }) => group === worker.id)
    expect(ofWorker).toMatchObject({ group_name: worker.name })
    const foreign = await usageOf(stranger, { group_by: 'key' })
    for (const { group } of foreign) expect([...accountWide.keys()]).not.toContain(group)
    expect(sumOf(foreign)).toMatchObject({ inboxes: 0, mails: 0, bytes: 0 })
    expect(await usageOf(stranger, { label: 'run:42' })).toEqual([])
  })

  it('counts requests over the limits as refusals, and does not count requests without a valid key', async () => {
    const limited = await issueKey(admin, { environment: 'limited', rate_limit: 2 })
    const statuses: number[] = []
    const paths = Array.from(
      { length: 40 },
      (_, n) => `/v1/inboxes/${idFromBytes('inb', Buffer.alloc(16, n))}`,
    )
    paths.push('/v1/account', '/v1/inboxes')
    for (let round = 0; round < 5; round += 1) {
      const answers = await Promise.all(paths.map((path) => call(withKey(mayfly, limited), 'GET', path)))
      statuses.push(...answers.map(({ status }) => status))
    }
    const requests = statuses.length
    const refusals = statuses.filter((status) => status === 429).length
    // Three requests are allowed at first, and two more in each minute that this takes.
    expect(refusals).toBeGreaterThan(180)
    const counted = async () =>
      byGroup(await usageOf(admin, { group_by: 'environment' })).get('limited') ?? NOTHING
    const expected = { ...NOTHING, requests, refusals }
    expect(await untilCounted(counted, (sum) => sum.requests >= requests)).toEqual(expected)

    expect((await call(admin, 'DELETE', `/v1/keys/${limited.id}`)).status).toBe(200)
    const refused = await call(withKey(mayfly, limited), 'GET', '/v1/usage')
    expectProblem(refused, { status: 401, code: 'revoked-api-key' })
    // Once a later request is counted, these would be too.
    await createInbox(withKey(mayfly, await issueKey(admin, { environment: 'afterwards' })))
    await untilCounted(
      async () => byGroup(await usageOf(admin, { group_by: 'environment' })).get('afterwards'),
      (sum) => sum?.requests === 1,
    )
    expect(await counted()).toEqual(expected)
    const { body } = await call<KeyJson>(admin, 'GET', `/v1/keys/${limited.id}`)
    expect(body).toMatchObject({ state: 'revoked', usage: expected })
  })

  it('is in each key as a total', async () => {
    await workerIsCounted()
    const { body: key } = await call<KeyJson>(admin, 'GET', `/v1/keys/${worker.id}`)
    expect(key.usage).toEqual(done)
    const { body: keys } = await call<KeyJson[]>(admin, 'GET', '/v1/keys?limit=100')
    expect(keys.find(({ id }) => id === worker.id)?.usage).toEqual(done)
    const unused = await issueKey(admin)
    expect(unused.usage).toEqual(NOTHING)
  })

  it.each([
    { query: 'from=yesterday', at: 'from' },
    { query: 'to=2026-02-30T00:00:00Z', at: 'to' },
    { query: 'from=2026-11-22T00:00:00Z&to=2026-11-21T00:00:00Z', at: 'from' },
    { query: 'from=2026-11-21T00:00:00Z&to=2026-11-21T00:00:00Z', at: 'from' },
    { query: 'from=9998-01-01T00:00:00Z', at: 'from' },
    { query: 'interval=week', at: 'interval' },
    { query: 'interval=', at: 'interval' },
    { query: 'group_by=colour', at: 'group_by' },
    { query: 'group_by=label.', at: 'group_by' },
    { query: 'group_by=label.a:b', at: 'group_by' },
    { query: `group_by=label.${'a'.repeat(65)}`, at: 'group_by' },
    { query: 'label=run', at: 'label' },
    { query: 'label=:42', at: 'label' },
    { query: `label=run:${'4'.repeat(129)}`, at: 'label' },
    { query: Array.from({ length: 17 }, () => 'label=a:b').join('&'), at: 'label' },
    { query: 'key=any', at: 'key' },
    { query: 'interval=hour&interval=day', at: 'interval' },
  ])('is refused for ?$query', async ({ query, at }) => {
    const answer = await call(admin, 'GET', `/v1/usage?${query}`)
    expectProblem(answer, { status: 400, code: 'invalid-request', at: [{ parameter: at }] })
  })

  it('is answered by second without a time range, and over years, if it has few rows', async () => {
    await workerIsCounted()
    const rows = await usageOf(admin, { interval: 'second', group_by: 'key' })
    expect(byGroup(rows).get(worker.id)).toEqual(done)
    const span = { from: '2020-01-01T00:00:00Z', to: '9999-12-31T23:59:59Z' }
    for (const interval of ['second', 'minute', 'hour', 'day']) {
      const found = await usageOf(admin, { interval, group_by: 'key', ...span })
      expect(byGroup(found).get(worker.id)).toEqual(done)
    }
  })

  it.each([
    '0001-01-01T00:00:00Z',
    '1969-12-31T23:59:59.999Z',
    '2299-12-31T23:59:59Z',
    '9999-12-30T00:00:00Z',
  ])('accepts dates as distant as %s', async (from) => {
    const to = new Date(Date.parse(from) + DAY_MS).toISOString()
    for (const tail of ['', '/report?label=run:42', '/export']) {
      const path = `/v1/usage${tail}${tail.includes('?') ? '&' : '?'}from=${from}&to=${to}`
      expect({ path, status: (await call(admin, 'GET', path)).status }).toEqual({ path, status: 200 })
    }
  })
})
