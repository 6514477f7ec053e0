import { randomUUID } from 'node:crypto'
import { setTimeout as pause } from 'node:timers/promises'
import type { ClickHouseClient } from '@clickhouse/client'
import { errorCode } from './clients.js'
import { MIGRATIONS } from './schema.js'

/** Longer than any migration takes. An older lock was left behind by a process that died. */
const STALE_AFTER_SECONDS = 60
const RETRY_MS = 200
const TABLE_ALREADY_EXISTS = '57'
const UNKNOWN_TABLE = '60'
const LOCK = 'migration_lock'

/**
 * Migrates the tables to the newest version. One process migrates, the others wait for it. ClickHouse has no locks, but
 * if several processes create a table of the same name, only one succeeds. `isAlone`: no other process can use these
 * tables, so that an existing lock is stale.
 */
export async function migrate(client: ClickHouseClient, { isAlone }: { isAlone: boolean }): Promise<void> {
  await client.command({
    query: `CREATE TABLE IF NOT EXISTS schema_migrations (version UInt32, applied_at DateTime DEFAULT now())
      ENGINE = MergeTree ORDER BY version`,
  })
  if ((await pendingIn(client)).length === 0) return
  await lock(client, isAlone)
  try {
    for (const { version, statements } of await pendingIn(client)) {
      for (const query of statements) await client.command({ query })
      await client.command({ query: `INSERT INTO schema_migrations (version) VALUES (${version})` })
    }
  } finally {
    await client.command({ query: `DROP TABLE IF EXISTS ${LOCK}` })
  }
}

async function pendingIn(client: ClickHouseClient): Promise<(typeof MIGRATIONS)[number][]> {
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
  return MIGRATIONS.filter(({ version }) => version > applied)
}

async function lock(client: ClickHouseClient, isAlone: boolean): Promise<void> {
  for (;;) {
    try {
      await client.command({ query: `CREATE TABLE ${LOCK} (taken UInt8) ENGINE = Memory` })
      return
    } catch (error) {
      if (errorCode(error) !== TABLE_ALREADY_EXISTS) throw error
    }
    if (isAlone || (await isStale(client))) await removeStaleLock(client)
    else await pause(RETRY_MS)
  }
}

async function isStale(client: ClickHouseClient): Promise<boolean> {
  const answer = await client.query({
    query: `SELECT now() - metadata_modification_time > ${STALE_AFTER_SECONDS} AS stale
      FROM system.tables WHERE database = currentDatabase() AND name = '${LOCK}'`,
    format: 'JSONEachRow',
  })
  const [row] = await answer.json<{ stale: number }>()
  return row?.stale === 1
}

/** Renames the lock before dropping it, so that only one process removes it and none drops a newer lock. */
async function removeStaleLock(client: ClickHouseClient): Promise<void> {
  const name = `${LOCK}_${randomUUID().replaceAll('-', '')}`
  try {
    await client.command({ query: `RENAME TABLE ${LOCK} TO ${name}` })
  } catch (error) {
    if (errorCode(error) === UNKNOWN_TABLE) return
    throw error
  }
  await client.command({ query: `DROP TABLE ${name}` })
}
