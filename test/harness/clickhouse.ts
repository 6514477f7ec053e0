import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import * as clickhouse from '#infra/clickhouse/clickhouse.js'
import { freePort } from '#infra/servers/ports.js'

/** A ClickHouse for one suite. It is stopped with the suite's process at the latest. */
export interface ClickHouseServer extends clickhouse.ClickHouseServer {
  /** Stops it and removes its data. */
  dispose(): Promise<void>
}

export type StartClickHouseOptions = Omit<clickhouse.ClickHouseOptions, 'folder' | 'port' | 'life'>

/** Starts it on a free port and an empty folder. Resolves once it answers. */
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
