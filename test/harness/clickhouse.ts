import * as clickhouse from '#infra/clickhouse/clickhouse.js'
import { freePort } from '#infra/servers/ports.js'
import { inFolder } from './server-folder.js'

/** A ClickHouse for one suite. It is stopped with the suite's process at the latest. */
export interface ClickHouseServer extends clickhouse.ClickHouseServer {
  /** Stops it and removes its data. */
  dispose(): Promise<void>
}

export type StartClickHouseOptions = Omit<clickhouse.ClickHouseOptions, 'folder' | 'port' | 'life'>

/** Starts it on a free port and an empty folder. Resolves once it answers. */
export async function startClickHouse(options: StartClickHouseOptions = {}): Promise<ClickHouseServer> {
  const port = await freePort()
  return inFolder('clickhouse', (folder, life) =>
    clickhouse.startClickHouse({ ...options, folder, port, life }),
  )
}
