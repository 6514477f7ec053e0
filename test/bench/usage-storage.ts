import { GeneratedUsage } from '#test/harness/generated-usage.js'
import { openUsageTables, type UsageTables } from '#test/harness/usage-tables.js'
import type { Figure } from './figure.js'
import type { Section } from './section.js'

const DAY_MS = 86_400_000
/** About the size of a batch that analytics writes under load. */
const INBOXES_AT_ONCE = 2_000
const TABLES = [
  ...['requests', 'inbox_events', 'mail_events', 'webhook_events'],
  ...['usage_minute', 'usage_hour', 'usage_day', 'routes_minute', 'webhooks_minute'],
]

/** The size of usage on disk: a day of many keys, merged as ClickHouse would do eventually. */
export const usageStorage: Section = async ({ plan, say }) => {
  const tables = await openUsageTables()
  try {
    const generated = new GeneratedUsage({ accounts: 20, keys: 10, partitions: 24 })
    const end = Date.now()
    const chunks = plan.countedInboxes / INBOXES_AT_ONCE
    const started = performance.now()
    let rows = 0
    for (let chunk = 0; chunk < chunks; chunk++) {
      const [from, to] = [chunk, chunk + 1].map((n) => new Date(end - DAY_MS + (DAY_MS * n) / chunks))
      if (from === undefined || to === undefined) break
      for (const batch of generated.generate(from, to, INBOXES_AT_ONCE)) {
        rows += batch.rows.length
        await tables.sink.write(batch)
      }
    }
    say(`${rows} events written in ${((performance.now() - started) / 1_000).toFixed(0)} s`)
    return await sizesOf(tables, rows)
  } finally {
    await tables.close()
  }
}

async function sizesOf(tables: UsageTables, events: number): Promise<Figure[]> {
  for (const table of TABLES) await tables.run(`OPTIMIZE TABLE ${table} FINAL`)
  const { rows } = await tables.query(
    `SELECT table, sum(rows) AS count, sum(bytes_on_disk) AS bytes FROM system.parts
      WHERE active AND database = currentDatabase() GROUP BY table`,
  )
  return TABLES.map((table) => {
    const found = rows.find((row) => row.table === table)
    const [count, bytes] = [Number(found?.count), Number(found?.bytes)]
    const note = `${count} rows of ${events} events.`
    return { name: `${table} on disk, a million rows`, unit: 'MB', rounds: [bytes / count], note }
  })
}
