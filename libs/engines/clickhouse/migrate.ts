import type { ClickHouseClient } from '@clickhouse/client'
import { MIGRATIONS } from './schema.js'

/** Migrates the tables to the newest version. Several processes may do so at once: each statement is idempotent. */
export async function migrate(client: ClickHouseClient): Promise<void> {
  await client.command({
    query: `CREATE TABLE IF NOT EXISTS schema_migrations (version UInt32, applied_at DateTime DEFAULT now())
      ENGINE = MergeTree ORDER BY version`,
  })
  const answer = await client.query({
    query: 'SELECT max(version) AS version FROM schema_migrations',
    format: 'JSONEachRow',
  })
  const [row] = await answer.json<{ version: number }>()
  const applied = row?.version ?? 0
  const newest = MIGRATIONS.at(-1)?.version ?? 0
  if (applied > newest) {
    throw new Error(
      `the tables of usage figures have version ${applied}, but this Mayfly supports versions up to ${newest}: ` +
        `run a newer Mayfly, or configure another database`,
    )
  }
  for (const { version, statements } of MIGRATIONS) {
    if (version <= applied) continue
    for (const query of statements) await client.command({ query })
    await client.command({ query: `INSERT INTO schema_migrations (version) VALUES (${version})` })
  }
}
