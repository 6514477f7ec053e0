import { readFileSync } from 'node:fs'
import { UsageStory } from '#test/harness/usage-story.js'
import { openUsageTables, type UsageTables } from '#test/harness/usage-tables.js'

const GUIDE = readFileSync('docs/analytics.md', 'utf8')
const QUERIES = [...GUIDE.matchAll(/^```sql\n-- (.*?)\n(.*?)^```$/gms)].map(
  ([, question = '', sql = '']) => [question, sql] as const,
)
const MINUTE = 60_000

describe('docs/analytics.md', () => {
  let tables: UsageTables
  let parameters: Record<string, string>

  beforeAll(async () => {
    tables = await openUsageTables()
    const [from, to] = [new Date(Date.now() - 60 * MINUTE), new Date()]
    for (const batch of new UsageStory().tell(from, to, 200)) await tables.sink.write(batch)
    // Inboxes that nothing came to.
    for (const batch of new UsageStory({ refusedMails: 1 }).tell(from, to, 5)) {
      await tables.sink.write({ ...batch, logId: 'another' })
    }
    const { rows } = await tables.ask('SELECT any(account_id) AS account FROM usage_day')
    parameters = {
      account: String(rows[0]?.account),
      label: 'run:0',
      log: 'story',
      // Figures of an hour stand at its beginning.
      from: secondsOf(new Date(from.getTime() - 60 * MINUTE)),
      to: secondsOf(new Date(to.getTime() + MINUTE)),
    }
  })
  afterAll(() => tables.close())

  it('has ten queries and more, each with what it answers', () => {
    expect(QUERIES.length).toBeGreaterThanOrEqual(10)
    expect(QUERIES).toHaveLength([...GUIDE.matchAll(/^```sql$/gm)].length)
    for (const [question] of QUERIES) expect(question).toMatch(/\?/)
  })

  it.each(QUERIES)('%s', async (_question, sql) => {
    const asked = [...sql.matchAll(/\{(\w+):/g)].map(([, name = '']) => name)
    const given = Object.fromEntries(asked.map((name) => [name, parameters[name]]))
    const { columns, rows } = await tables.ask(sql, given)
    expect(rows.length).toBeGreaterThan(0)
    for (const { name } of columns) {
      expect([name, rows.some((row) => row[name] !== null && row[name] !== '')]).toEqual([name, true])
    }
  })

  it('names every table, its columns in their order, and how long rows are kept', async () => {
    const { rows } = await tables.ask(
      `SELECT t.name AS name, extract(t.engine_full, 'toIntervalDay\\\\((\\\\d+)\\\\)') AS days
        FROM system.tables AS t
        WHERE t.database = currentDatabase() AND t.engine LIKE '%MergeTree' AND t.name != 'schema_migrations'
        ORDER BY name`,
    )
    const { rows: columns } = await tables.ask(
      'SELECT table, name FROM system.columns WHERE database = currentDatabase() ORDER BY table, position',
    )
    const there = rows.map(({ name, days }) => ({
      name,
      columns: columns.filter(({ table }) => table === name).map((column) => column.name),
      kept: days === '' ? 'for ever' : `${String(days)} days`,
    }))
    const told = [...GUIDE.matchAll(/^\| `(\w+)` +\|[^|]*\|([^|]*)\| ([^|]*?) *\|$/gm)].map(
      ([, name, names = '', kept]) => ({
        name,
        columns: [...names.matchAll(/`(\w+)`/g)].map(([, column]) => column),
        kept,
      }),
    )
    expect(told.toSorted((one, other) => ((one.name ?? '') < (other.name ?? '') ? -1 : 1))).toEqual(there)
  })
})

/** As ClickHouse reads a DateTime. */
function secondsOf(at: Date): string {
  return at.toISOString().slice(0, 19).replace('T', ' ')
}
