import { mintId } from '#libs/domain/ids/mint.js'
import type { KeyId } from '#libs/domain/ids/typeid.js'
import { EXPORT_TABLES, type ExportTable } from './usage-store.js'
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
  served,
  write,
  type OpenUsage,
  type UsageHarness,
} from './usage-harness.contract.js'

const HOUR = 3_600_000
const DAY = 86_400_000

/** The exports of every store of usage figures. */
export function describeUsageExports(name: string, open: OpenUsage): void {
  describe(`exported usage figures on ${name}`, () => {
    let usage: UsageHarness

    beforeEach(async () => (usage = await open()))
    afterEach(() => usage.close())

    const file = async (
      table: ExportTable,
      format: 'parquet' | 'ndjson' | 'csv',
      accountId = ACCOUNT,
      otherNames: (readonly [KeyId, string])[] = [],
    ): Promise<Buffer> => {
      const { signal } = new AbortController()
      const keyNames = new Map([...otherNames, [KEY, "a 'quoted' name"]])
      const query = { accountId, from: after(-DAY), to: after(DAY), table, format, keyNames }
      const chunks: Uint8Array[] = []
      for await (const chunk of await usage.queries.export(query, signal)) chunks.push(chunk)
      return Buffer.concat(chunks)
    }

    beforeEach(() =>
      write(usage.sink, [
        served(after(2), { ms: 20 }),
        served(after(1), { ms: 10, labels: { run: '42' } }),
        received(NOON),
        served(after(2 * DAY)),
        mailed('shown', NOON),
      ]),
    )

    it('have one line of JSON for each event of the account', async () => {
      const lines = (await file('requests', 'ndjson')).toString().trim().split('\n')
      expect(lines.map((line) => JSON.parse(line) as unknown)).toMatchObject([
        {
          ...{ account_id: ACCOUNT, occurred_at: after(1).toISOString(), key_id: KEY },
          key_name: "a 'quoted' name",
          ...{ labels: ['run:42'], duration_ms: 10, refused: false },
        },
        { occurred_at: after(2).toISOString(), key_id: KEY, labels: [], duration_ms: 20 },
      ])
      expect((await file('requests', 'ndjson', OTHER_ACCOUNT)).toString()).toBe('')
    })

    it('have the names of keys, even of an account with many', async () => {
      const names = Array.from({ length: 1_000 }, () => [mintId('key'), `\\'${'鍵'.repeat(200)}`] as const)
      const lines = (await file('requests', 'ndjson', ACCOUNT, names)).toString().trim().split('\n')
      expect(lines.map((line) => JSON.parse(line) as unknown)).toMatchObject([
        { key_name: "a 'quoted' name" },
        { key_name: "a 'quoted' name" },
      ])
    })

    it('have one line of CSV for each interval of a key, even if it was written several times', async () => {
      await write(usage.sink, [served(after(3), { ms: 30 })])
      const starts = { usage: NOON, usage_minute: NOON, usage_hour: NOON, usage_day: after(-12 * HOUR) }
      for (const table of ['usage', 'usage_minute', 'usage_hour', 'usage_day'] as const) {
        const about = [ACCOUNT, starts[table].toISOString(), 'staging', KEY, "a 'quoted' name"].map((text) =>
          JSON.stringify(text),
        )
        expect((await file(table, 'csv')).toString().trim().split('\n')).toEqual([
          '"account_id","starts_at","environment","key_id","key_name","requests","refusals","inboxes","mails","bytes",' +
            '"request_ms_p50","request_ms_p95","request_ms_p99","visible_ms_p50","visible_ms_p95","visible_ms_p99"',
          [...about, 3, 0, 0, 1, 1_000, 20, 30, 30, 0, 0, 0].join(','),
        ])
      }
    })

    it('have one line for each minute of a route and a status', async () => {
      await write(usage.sink, [served(after(3), { ms: 30, status: 404 })])
      const lines = (await file('routes_minute', 'ndjson')).toString().trim().split('\n')
      const about = { account_id: ACCOUNT, starts_at: NOON.toISOString(), http_method: 'GET' }
      expect(lines.map((line) => JSON.parse(line) as unknown)).toMatchObject([
        { ...about, route: '/v1/inboxes', status: 200, requests: 2, request_ms_p50: 10 },
        { ...about, route: '/v1/inboxes', status: 404, requests: 1, request_ms_p50: 30 },
      ])
    })

    it('have labels as JSON in CSV, and empty fields for what was not timed', async () => {
      const labels = { story: 'a "quoted", one' }
      await write(usage.sink, [created(after(HOUR), inboxAt(2), labels)])
      const events = (await file('inbox_events', 'csv')).toString().trim().split('\n')
      expect(events.at(-1)).toContain(`"[""story:a \\""quoted\\"", one""]"`)
      const figures = (await file('usage', 'csv')).toString().trim().split('\n')
      expect(figures.at(-1)).toMatch(/,0,0,1,0,0,,,,,,$/)
    })

    it('can be exported as Parquet', async () => {
      for (const table of EXPORT_TABLES) {
        const bytes = await file(table, 'parquet')
        const ends = [bytes.subarray(0, 4), bytes.subarray(-4)].map((part) => part.toString('latin1'))
        expect([table, ...ends]).toEqual([table, 'PAR1', 'PAR1'])
      }
    })
  })
}
