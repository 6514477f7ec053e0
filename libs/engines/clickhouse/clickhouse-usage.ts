import { join } from 'node:path'
import type { ClickHouseClient } from '@clickhouse/client'
import pLimit from 'p-limit'
import type { UsageStore } from '#libs/ports/usage/usage-store.js'
import { makeFolder } from '#libs/runtime/folder.js'
import { ClickHouseUsageQueries } from './clickhouse-usage-queries.js'
import { ClickHouseUsageSink } from './clickhouse-usage-sink.js'
import { chdbClient, serverClient, type ServerAddress, orUnavailable } from './clients.js'
import { fromChdb, fromServer, MAX_QUERY_BYTES, type StreamFile } from './export-query.js'
import { migrate } from './migrate.js'

const CHDB_DATABASE = 'mayfly'

/** Each call of chDB blocks one of the four threads of Node's pool, which also compresses mail. */
const IN_PROCESS = { writes: 1, queries: 2 }
const ON_SERVER = { writes: 3, queries: 8 }

/**
 * Opens chDB in this process, on a folder of its own, and migrates its tables. Null if chDB does not support this system.
 * Rejects if it can't read its files.
 */
export async function openChdbUsage(folder: string): Promise<UsageStore | null> {
  makeFolder(folder)
  const client = await chdbClient(join(folder, 'tables'))
  if (client === null) return null
  try {
    await client.command({ query: `CREATE DATABASE IF NOT EXISTS ${CHDB_DATABASE}` })
    await client.command({ query: `USE ${CHDB_DATABASE}` })
    await client.command({ query: `SET max_query_size = ${MAX_QUERY_BYTES}` })
    await migrate(client)
  } catch (error) {
    await client.close()
    throw error
  }
  return storeOn(client, IN_PROCESS, fromChdb(client, join(folder, 'exports')))
}

/** Uses a ClickHouse server. Connects at the first request. */
export function serverUsage(address: ServerAddress): UsageStore {
  const client = serverClient(address)
  return storeOn(client, ON_SERVER, fromServer(client), async () => {
    // A client can't use a database that does not exist yet.
    const setup = serverClient({ ...address, database: 'default' })
    try {
      await setup.command({ query: `CREATE DATABASE IF NOT EXISTS ${address.database}` })
    } finally {
      await setup.close()
    }
    await migrate(client)
  })
}

/** `max` is the number of writes and of queries that run at once. */
function storeOn(
  client: ClickHouseClient,
  max: { writes: number; queries: number },
  streamFile: StreamFile,
  prepare?: () => Promise<void>,
): UsageStore {
  return {
    sink: new ClickHouseUsageSink(client, pLimit(max.writes)),
    queries: new ClickHouseUsageQueries(client, streamFile, pLimit(max.queries)),
    prepare: () => orUnavailable(async () => prepare?.()),
    close: () => client.close(),
  }
}
