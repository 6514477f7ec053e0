import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import type { ClickHouseClient } from '@clickhouse/client'
import type { UsageQueries, UsageSink } from '../usage-store.js'
import { ClickHouseUsageQueries, type StreamFile } from './clickhouse-usage-queries.js'
import { ClickHouseUsageSink } from './clickhouse-usage-sink.js'
import { openChdb, openServer, type ServerAddress } from './clients.js'
import { fromChdb, fromServer } from './file-streams.js'
import { migrate } from './migrate.js'

/** Usage figures on ClickHouse. */
export interface ClickHouseUsage {
  sink: UsageSink
  queries: UsageQueries
  close(): Promise<void>
}

/** In this process, on files in a folder of its own. Null where chDB does not come for this system. */
export async function openChdbUsage(folder: string): Promise<ClickHouseUsage | null> {
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  const client = await openChdb(join(folder, 'tables'))
  if (client === null) return null
  return openOn(client, fromChdb(client, join(folder, 'exports')), true)
}

/** On a server. Rejects where it can't be reached, or does not take what is asked for. */
export async function openServerUsage(address: ServerAddress): Promise<ClickHouseUsage> {
  const client = await openServer(address)
  return openOn(client, fromServer(client), false)
}

async function openOn(
  client: ClickHouseClient,
  streamFile: StreamFile,
  isAlone: boolean,
): Promise<ClickHouseUsage> {
  try {
    await migrate({ client, isAlone })
  } catch (error) {
    await client.close()
    throw error
  }
  return {
    sink: new ClickHouseUsageSink(client),
    queries: new ClickHouseUsageQueries(client, streamFile),
    close: () => client.close(),
  }
}
