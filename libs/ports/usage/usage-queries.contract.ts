import type { KeyId } from '#libs/domain/ids/typeid.js'
import type { UsageFigures, UsageQuery } from './usage-store.js'
import {
  ACCOUNT,
  after,
  created,
  inboxAt,
  KEY,
  mailed,
  NOON,
  OTHER_ACCOUNT,
  received,
  SECOND_KEY,
  served,
  TENANT,
  write,
  type OpenUsage,
  type UsageHarness,
} from './usage-harness.contract.js'

const SECOND = 1_000
const MINUTE = 60_000
const HOUR = 3_600_000
const DAY = 86_400_000
const NOTHING = { requests: 0, refusals: 0, inboxes: 0, mails: 0, bytes: 0 }

/** The queries of every store of usage figures. */
export function describeUsageQueries(name: string, open: OpenUsage): void {
  describe(`usage figures on ${name}`, () => {
    let usage: UsageHarness

    beforeEach(async () => (usage = await open()))
    afterEach(() => usage.close())

    const figures = (query: Partial<UsageQuery> = {}): Promise<UsageFigures[] | null> =>
      usage.queries.figures({
        ...{ owner: { accountId: ACCOUNT, keyId: null }, from: after(-DAY), to: after(DAY) },
        ...{ interval: 'hour', grouping: { by: 'none' }, labels: [], limit: 10_000 },
        ...query,
      })

    const sumOf = (rows: readonly UsageFigures[] | null, name: keyof typeof NOTHING): number =>
      (rows ?? []).reduce((sum, row) => sum + row[name], 0)

    it('are empty if nothing happened', async () => {
      expect(await figures()).toEqual([])
    })

    it('count each event in its interval', async () => {
      await write(usage.sink, [
        served(after(0), { ms: 10 }),
        served(after(1), { ms: 20 }),
        served(after(2), { ms: 30, status: 429 }),
        mailed('refused', after(3)),
        mailed('shown', after(4), { ms: 40 }),
        mailed('accepted', after(4)),
        mailed('read', after(5), { ms: 50 }),
        created(after(6), inboxAt(1)),
        received(after(7), { size: 300 }),
        received(after(8), { size: 700 }),
        served(after(HOUR), { ms: 5 }),
        // A wait lasts as long as its client chooses: it is counted, but not timed.
        served(after(HOUR), { ms: 25_000, route: '/v1/inboxes/{id}/messages/wait' }),
      ])
      expect(await figures()).toEqual([
        {
          ...{ at: NOON, group: null, requests: 3, refusals: 2, inboxes: 1, mails: 2, bytes: 1_000 },
          requestMs: { p50: 20, p95: 30, p99: 30 },
          visibleMs: { p50: 40, p95: 40, p99: 40 },
        },
        {
          ...{ at: after(HOUR), group: null, ...NOTHING, requests: 2 },
          requestMs: { p50: 5, p95: 5, p99: 5 },
          visibleMs: null,
        },
      ])
    })

    it.each(['second', 'minute', 'hour', 'day'] as const)(
      'include `from` and exclude `to`, to the millisecond, by the %s',
      async (interval) => {
        const [from, to] = [after(-DAY - HOUR - MINUTE - SECOND - 1), after(DAY + HOUR + MINUTE + SECOND + 1)]
        const edges = [from.getTime() - 1, from.getTime(), to.getTime() - 1, to.getTime()]
        const within = [0, MINUTE, HOUR, -HOUR, -DAY].map((ms) => after(ms).getTime())
        await write(
          usage.sink,
          [...edges, ...within].map((ms) => served(new Date(ms))),
        )
        expect(sumOf(await figures({ from, to, interval }), 'requests')).toBe(2 + within.length)
        expect(sumOf(await figures({ from: NOON, to: NOON, interval }), 'requests')).toBe(0)
      },
    )

    it('are those of one key or of the account, never of another account', async () => {
      const foreign = { ...TENANT, accountId: OTHER_ACCOUNT }
      const second = { ...TENANT, keyId: SECOND_KEY, environment: 'production' }
      await write(usage.sink, [
        served(NOON),
        served(NOON, {}, second),
        served(NOON, {}, foreign),
        received(NOON, {}, foreign),
        mailed('read', NOON, {}, foreign),
      ])
      expect(await figures({ owner: { accountId: ACCOUNT, keyId: KEY } })).toMatchObject([{ requests: 1 }])
      expect(await figures()).toMatchObject([{ requests: 2, mails: 0 }])
      expect(await figures({ grouping: { by: 'key' } })).toMatchObject([
        { group: KEY, requests: 1 },
        { group: SECOND_KEY, requests: 1 },
      ])
      expect(await figures({ grouping: { by: 'environment' } })).toMatchObject([
        { group: 'production', requests: 1 },
        { group: 'staging', requests: 1 },
      ])
    })

    it('can be grouped and filtered by label', async () => {
      const labels = (run: string) => ({ run, suite: "it's: a \\ 'test'" })
      await write(usage.sink, [
        served(NOON, { labels: labels('42') }),
        served(after(1), { labels: labels('42') }),
        served(NOON, { labels: labels('43') }),
        served(NOON, { labels: { rune: '42' } }),
        served(NOON),
        created(NOON, inboxAt(1), labels('42')),
        received(NOON, { labels: labels('42') }),
        mailed('refused', NOON, { labels: labels('43') }),
      ])
      expect(await figures({ grouping: { by: 'label', name: 'run' } })).toMatchObject([
        { group: '42', requests: 2, inboxes: 1, mails: 1, refusals: 0 },
        { group: '43', requests: 1, refusals: 1 },
        { group: null, requests: 2 },
      ])
      const suite = ['suite', "it's: a \\ 'test'"] as const
      expect(await figures({ labels: [['run', '43'], suite] })).toMatchObject([{ requests: 1, refusals: 1 }])
      expect(await figures({ labels: [['run', '4']] })).toEqual([])
      expect(
        await figures({ labels: [['run', "' OR 1 = 1 --"]], grouping: { by: 'label', name: "x'" } }),
      ).toEqual([])
    })

    it('are null if there are more rows than the limit, however long the span is', async () => {
      await write(
        usage.sink,
        Array.from({ length: 30 }, (_, n) => served(after(n * SECOND), { labels: { run: String(n % 2) } })),
      )
      const from = after(-60 * DAY)
      const times = Array.from({ length: 30 }, (_, n) => ({ at: after(n * SECOND) }))
      expect(await figures({ from, interval: 'second', limit: 30 })).toMatchObject(times)
      expect(await figures({ from, interval: 'second', limit: 29 })).toBeNull()
      expect(await figures({ from, interval: 'minute', limit: 1 })).toHaveLength(1)
      const grouping = { by: 'label', name: 'run' } as const
      expect(await figures({ from, interval: 'day', grouping, limit: 2 })).toHaveLength(2)
      expect(await figures({ from, interval: 'day', grouping, limit: 1 })).toBeNull()
    })

    it('have totals for each key since it was issued', async () => {
      await write(usage.sink, [
        served(after(-30 * DAY)),
        served(NOON, { status: 429 }),
        created(NOON, inboxAt(1)),
        received(NOON, { size: 5 }),
      ])
      expect(await usage.queries.totals(ACCOUNT, [KEY, SECOND_KEY])).toEqual(
        new Map([[KEY, { requests: 2, refusals: 1, inboxes: 1, mails: 1, bytes: 5 }]]),
      )
      expect(await usage.queries.totals(OTHER_ACCOUNT, [KEY])).toEqual(new Map())
      expect(await usage.queries.totals(ACCOUNT, [])).toEqual(new Map())
    })

    describe('in a report', () => {
      const report = (labels: UsageQuery['labels'], keyId: KeyId | null = null) =>
        usage.queries.report({
          owner: { accountId: ACCOUNT, keyId },
          from: after(-DAY),
          to: after(DAY),
          labels,
        })

      it('summarize a run', async () => {
        const labels = { run: '42' }
        const one = '0123456789abcdef'
        await write(usage.sink, [
          ...[1, 2, 3].map((n) => created(NOON, inboxAt(n), labels)),
          // One is repeated by its sender, then by a fault.
          ...[1, 2, 5].map((message) => received(after(1), { message, labels, size: 10, fingerprint: one })),
          // The same Message-ID for another recipient is no duplicate, nor is a mail without one.
          received(after(3), { message: 3, labels, size: 10, fingerprint: one, inboxId: inboxAt(2) }),
          received(after(4), { message: 4, labels, size: 10 }),
          ...[7, 3, 3, 3].map((ms, index) => mailed('accepted', after(1 + index), { labels, ms })),
          ...[10, 20, 30, 40].map((ms) => mailed('shown', after(10), { labels, ms })),
          // The earliest reading counts, in whichever order readings are recorded.
          ...[300, 100, 200].map((ms) => mailed('read', after(20), { message: 1, labels, ms })),
          mailed('refused', after(30), { labels }),
          served(after(30), { labels, status: 429 }),
          served(after(30), { labels }),
          received(NOON, { message: 9 }),
        ])
        expect(await report([['run', '42']])).toEqual({
          ...{ requests: 2, refusals: 2, inboxes: 3, mails: 5, bytes: 50, duplicates: 2, read: 1 },
          visibleMs: { p50: 20, p95: 40, p99: 40, max: 40 },
          firstReadMs: { p50: 100, p95: 100, p99: 100, max: 100 },
          acceptMs: { p50: 3, p95: 7, p99: 7, max: 7 },
          ...{ inboxesWithoutMail: 1, firstMailAt: after(1), lastMailAt: after(4) },
          timeline: [{ from: NOON, to: after(SECOND), mails: 5, bytes: 50 }],
        })
      })

      it('have a timeline with the buckets without mail', async () => {
        const labels = { run: '42' }
        const at = (ms: number, message: number) => received(after(ms), { message, labels, size: 10 })
        await write(usage.sink, [
          ...[at(999, 1), at(2_000, 2), at(2_001, 3), at(199_999, 4)],
          received(after(1_000), { message: 9 }),
        ])
        const { timeline } = await report([['run', '42']])
        expect(timeline).toHaveLength(200)
        expect(timeline.filter(({ mails }) => mails > 0)).toEqual([
          { from: NOON, to: after(1_000), mails: 1, bytes: 10 },
          { from: after(2_000), to: after(3_000), mails: 2, bytes: 20 },
          { from: after(199_000), to: after(200_000), mails: 1, bytes: 10 },
        ])
        await write(usage.sink, [at(200_000, 5)])
        const longer = await report([['run', '42']])
        expect(longer.timeline).toHaveLength(101)
        expect(longer.timeline[1]).toEqual({ from: after(2_000), to: after(4_000), mails: 2, bytes: 20 })
      })

      it('know of a mail that counts for the key of its sender', async () => {
        await write(usage.sink, [
          ...[1, 2].map((n) => created(NOON, inboxAt(n))),
          received(NOON, { message: 1 }, { ...TENANT, keyId: SECOND_KEY }),
        ])
        expect(await report([], KEY)).toMatchObject({ inboxes: 2, mails: 0, inboxesWithoutMail: 1 })
        expect(await report([], SECOND_KEY)).toMatchObject({ inboxes: 0, mails: 1, inboxesWithoutMail: 0 })
      })

      it('are empty if no event has the label', async () => {
        await write(usage.sink, [served(NOON), received(NOON)])
        expect(await report([['run', '42']])).toEqual({
          ...{ ...NOTHING, duplicates: 0, read: 0, visibleMs: null, firstReadMs: null, acceptMs: null },
          ...{ inboxesWithoutMail: 0, firstMailAt: null, lastMailAt: null, timeline: [] },
        })
      })
    })
  })
}
