import { encodeRows, type UsageRow } from './usage-rows.js'
import type { UsageBatch, UsageFigures } from './usage-store.js'
import {
  ACCOUNT,
  after,
  created,
  inboxAt,
  KEY,
  mailed,
  NOON,
  received,
  served,
  type OpenUsage,
  type UsageHarness,
} from './usage-harness.contract.js'

/** The sink of every store of usage figures. */
export function describeUsageSink(name: string, open: OpenUsage): void {
  describe(`the sink of usage figures on ${name}`, () => {
    let usage: UsageHarness

    beforeEach(async () => (usage = await open()))
    afterEach(() => usage.close())

    const batchOf = (first: number, end: number, rows: readonly UsageRow[]): UsageBatch => ({
      ...{ logId: 'log', topic: 'usage-events', ranges: [{ partition: 3, first, end }] },
      rows: encodeRows(rows),
    })

    const figures = async (interval: 'second' | 'minute' | 'hour' | 'day'): Promise<UsageFigures[] | null> =>
      usage.queries.figures({
        ...{ owner: { accountId: ACCOUNT, keyId: null }, from: after(-86_400_000), to: after(86_400_000) },
        ...{ interval, grouping: { by: 'none' }, labels: [], limit: 10_000 },
      })

    const RICH = [served(NOON), created(NOON, inboxAt(1)), received(NOON), mailed('refused', NOON)]

    it('counts a batch that is written again only once, in every table', async () => {
      const batch = batchOf(0, 4, RICH)
      await usage.sink.write(batch)
      await usage.sink.write(batch)
      await Promise.all([usage.sink.write(batch), usage.sink.write(batch)])
      for (const interval of ['second', 'minute', 'hour', 'day'] as const) {
        expect(await figures(interval)).toMatchObject([{ requests: 1, inboxes: 1, mails: 1, refusals: 1 }])
      }
    })

    it('counts the same rows again in another range, topic or log', async () => {
      const rows = [served(NOON)]
      await usage.sink.write(batchOf(0, 1, rows))
      await usage.sink.write(batchOf(1, 2, rows))
      await usage.sink.write({ ...batchOf(0, 1, rows), topic: 'inbox-events' })
      await usage.sink.write({ ...batchOf(0, 1, rows), logId: 'another' })
      expect(await figures('day')).toMatchObject([{ requests: 4 }])
    })

    it('writes a batch of many thousand rows of several months as a whole', async () => {
      const month = 31 * 86_400_000
      const rows = Array.from({ length: 30_000 }, (_, n) => served(after(-(n % 3) * month)))
      const batch = batchOf(0, rows.length, rows)
      await usage.sink.write(batch)
      await usage.sink.write(batch)
      expect((await usage.queries.totals(ACCOUNT, [KEY])).get(KEY)?.requests).toBe(rows.length)
    })

    it('writes any label and any count', async () => {
      const texts = [
        '\ud800',
        'x\udc00y',
        'a\0b',
        '\u0001\u001f\u2028',
        '\n\n;',
        `'"\\,[]{}`,
        '\\u12',
        '\uffff',
        '😀',
      ]
      const rows = texts.map((text) => created(NOON, inboxAt(1), { text }))
      const large = received(NOON, { size: Number.MAX_SAFE_INTEGER })
      await usage.sink.write(batchOf(0, rows.length + 1, [...rows, large]))
      expect(await figures('day')).toMatchObject([{ inboxes: texts.length, mails: 1 }])
    })

    it('returns the offset up to which each partition is written', async () => {
      expect(await usage.sink.writtenTo('log', 'usage-events')).toEqual(new Map())
      await usage.sink.write(batchOf(0, 4, RICH))
      await usage.sink.write(batchOf(4, 9, []))
      await usage.sink.write({ ...batchOf(0, 2, []), ranges: [{ partition: 1, first: 0, end: 2 }] })
      await usage.sink.write({ ...batchOf(0, 7, []), topic: 'inbox-events' })
      expect(await usage.sink.writtenTo('log', 'usage-events')).toEqual(
        new Map([
          [1, 2],
          [3, 9],
        ]),
      )
      expect(await usage.sink.writtenTo('another', 'usage-events')).toEqual(new Map())
    })
  })
}
