import { mkdir, writeFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { Agent, request } from 'undici'
import { LOOPBACK } from '../servers/ports.js'
import { ServerProcess, type Life } from '../servers/server-process.js'
import type { Configuration } from './main.js'

/*
 * Starts main.ts as a process of its own. Its folder holds clickhouse.json, clickhouse.log and data/.
 */

export interface ClickHouseOptions {
  folder: string
  port: number
  life: Life
  /** `default`, without a password, unless told otherwise. */
  access?: { user: string; password: string }
  /** Longest body of a request, uncompressed. */
  mostBodyBytes?: number
  /** PEM files of the certificate that it shows and of its key; it speaks no TLS without them. */
  tls?: { cert: string; key: string }
}

export interface ClickHouseServer {
  readonly url: string
  readonly port: number
  readonly pid: number
  /** Folder of what it stores. */
  readonly dataDir: string
  /** Sends a signal; where it is one that ends a process, resolves once the server has ended. */
  kill(signal: NodeJS.Signals): Promise<void>
  /** Starts it, once it has ended, on the same data and port; resolves once it answers. */
  startAgain(): Promise<void>
}

const UP_WITHIN_MS = 60_000
const ANSWER_WITHIN_MS = 1_000
const MAX_BODY_BYTES = 256 * 1024 * 1024
/** Statements that run at once; each holds a thread of Node's pool. */
const THREADS = 16

/** Whether the engine's library is there for this platform. */
export function hasEngine(): boolean {
  try {
    createRequire(import.meta.url)('chdb')
    return true
  } catch {
    return false
  }
}

/** Resolves once it answers. */
export async function startClickHouse(options: ClickHouseOptions): Promise<ClickHouseServer> {
  const { folder, port, access = { user: 'default', password: '' } } = options
  const { mostBodyBytes = MAX_BODY_BYTES, tls = null } = options
  const dataDir = join(folder, 'data')
  await mkdir(folder, { recursive: true })
  const configuration: Configuration = { folder: dataDir, port, ...access, mostBodyBytes, tls }
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
    async startAgain() {
      if (!server.hasEnded()) throw new Error(`ClickHouse at port ${port} runs still`)
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

/** Whatever certificate it shows. */
async function answersPing(url: string): Promise<boolean> {
  const asked = new Agent({ connect: { rejectUnauthorized: false } })
  try {
    const signal = AbortSignal.timeout(ANSWER_WITHIN_MS)
    const { statusCode, body } = await request(`${url}/ping`, { dispatcher: asked, signal })
    await body.dump()
    return statusCode === 200
  } catch {
    return false
  } finally {
    await asked.destroy()
  }
}
