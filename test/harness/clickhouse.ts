import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import * as clickhouse from '#infra/clickhouse/clickhouse.js'
import { freePort } from '#infra/servers/ports.js'

/** A ClickHouse of a suite's own, that ends with the suite's process at the latest. */
export interface ClickHouseServer extends clickhouse.ClickHouseServer {
  /** Ends it and removes its data. */
  dispose(): Promise<void>
}

export type StartClickHouseOptions = Omit<clickhouse.ClickHouseOptions, 'folder' | 'port' | 'life'>

/** Resolves once it answers, on a free port and an empty folder. */
export async function startClickHouse(options: StartClickHouseOptions = {}): Promise<ClickHouseServer> {
  const port = await freePort()
  const folder = await mkdtemp(join(tmpdir(), 'mayfly-clickhouse-'))
  const remove = () => rm(folder, { recursive: true, force: true })
  try {
    const life = { endsWithOwner: true, removing: folder } as const
    const server = await clickhouse.startClickHouse({ ...options, folder, port, life })
    const dispose = async () => {
      await server.kill('SIGKILL')
      await remove()
    }
    return Object.assign(server, { dispose })
  } catch (error) {
    await remove()
    throw error
  }
}
