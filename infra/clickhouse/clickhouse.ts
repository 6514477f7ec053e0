import { mkdir, writeFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { Agent, request } from 'undici'
import { LOOPBACK } from '../servers/ports.js'
import { ServerProcess, type Life } from '../servers/server-process.js'
import type { Configuration } from './main.js'

/* Starts main.ts as a separate process. Its folder has clickhouse.json, clickhouse.log and data/. */

export interface ClickHouseOptions {
  folder: string
  port: number
  life: Life
  /** By default `default`, without a password. */
  access?: { user: string; password: string }
  /** Maximum size of a request's body, uncompressed. */
  maxBodyBytes?: number
  /** PEM files of its certificate and key; enables TLS. */
  tls?: { cert: string; key: string }
}

export interface ClickHouseServer {
  readonly url: string
  readonly port: number
  readonly pid: number
  /** Data folder. */
  readonly dataDir: string
  /** Sends a signal. If the signal ends processes, resolves once the server has ended. */
  kill(signal: NodeJS.Signals): Promise<void>
  /** Starts it again after it has ended, on the same data and port. Resolves once it answers. */
  restart(): Promise<void>
}

const UP_WITHIN_MS = 60_000
const ANSWER_WITHIN_MS = 1_000
const MAX_BODY_BYTES = 256 * 1024 * 1024
/** Maximum of concurrent statements. Each takes a thread of Node's pool. */
const THREADS = 16

/** Whether chDB's library is installed. */
export function hasEngine(): boolean {
  try {
    createRequire(import.meta.url)('chdb')
    return true
  } catch {
    return false
  }
}

/** Starts it. Resolves once it answers. */
export async function startClickHouse(options: ClickHouseOptions): Promise<ClickHouseServer> {
  const { folder, port, access = { user: 'default', password: '' } } = options
  const { maxBodyBytes = MAX_BODY_BYTES, tls = null } = options
  const dataDir = join(folder, 'data')
  await mkdir(folder, { recursive: true })
  const configuration: Configuration = { folder: dataDir, port, ...access, maxBodyBytes, tls }
  await writeFile(join(folder, 'clickhouse.json'), JSON.stringify(configuration), { mode: 0o600 })
  let server = await start(options)
  return {
    url: urlOf(options),
    port,
    dataDir,
    get pid() {
      return server.pid
    },
    kill: (signal) => server.end(signal),
    async restart() {
      if (!server.hasEnded()) throw new Error(`ClickHouse at port ${port} is still running`)
      server = await start(options)
    },
  }
}

function urlOf({ port, tls }: ClickHouseOptions): string {
  return `${tls === undefined ? 'http' : 'https'}://${LOOPBACK}:${port}`
}

function start(options: ClickHouseOptions): Promise<ServerProcess> {
  const { folder, port, life } = options
  const main = join(process.cwd(), 'dist/infra/clickhouse/main.js')
  const launch = {
    name: `ClickHouse at port ${port}`,
    command: [
      'env',
      `UV_THREADPOOL_SIZE=${THREADS}`,
      process.execPath,
      main,
      join(folder, 'clickhouse.json'),
    ],
    logPath: join(folder, 'clickhouse.log'),
    life,
  } as const
  return ServerProcess.start(launch, () => answersPing(urlOf(options)), UP_WITHIN_MS)
}

/** Accepts any certificate. */
async function answersPing(url: string): Promise<boolean> {
  const agent = new Agent({ connect: { rejectUnauthorized: false } })
  try {
    const signal = AbortSignal.timeout(ANSWER_WITHIN_MS)
    const { statusCode, body } = await request(`${url}/ping`, { dispatcher: agent, signal })
    await body.dump()
    return statusCode === 200
  } catch {
    return false
  } finally {
    await agent.destroy()
  }
}
