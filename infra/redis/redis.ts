import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { firstAnswer, LOOPBACK } from '../servers/ports.js'
import { ServerProcess, type Life } from '../servers/server-process.js'

/*
 * The machine's redis-server on loopback, with `noeviction`, as Mayfly requires. Its folder has redis.conf, redis.log
 * and data/. It must only be reachable from this machine, because it requires no password.
 */

/** What survives the process: nothing; all writes except those of the last second; the last dump by SAVE, BGSAVE or SIGTERM. */
export type Persistence = 'none' | 'append-only' | 'dump'

export interface RedisOptions {
  folder: string
  port: number
  persistence: Persistence
  life: Life
  isClusterNode?: boolean
  /** Added to redis.conf; overrides the defaults. */
  settings?: Readonly<Record<string, string | number>>
}

export interface RedisServer {
  readonly url: string
  readonly port: number
  readonly pid: number
  /** Folder of its dump, append-only files, and nodes.conf of a Cluster. */
  readonly dataDir: string
  /** Sends a signal. If the signal ends processes, resolves once the server has ended. */
  kill(signal: NodeJS.Signals): Promise<void>
  /** Starts it again after it has ended, on the same data and port. Resolves once it answers. */
  restart(): Promise<void>
}

const UP_WITHIN_MS = 30_000
const ANSWER_WITHIN_MS = 1_000

const KEPT: Readonly<Record<Persistence, Record<string, string>>> = {
  none: { save: '""', appendonly: 'no' },
  'append-only': { save: '""', appendonly: 'yes', appendfsync: 'everysec' },
  dump: { save: '3600 1', appendonly: 'no' },
}

/** Starts it. Resolves once it answers. */
export async function startRedis(options: RedisOptions): Promise<RedisServer> {
  const { folder, port } = options
  const dataDir = join(folder, 'data')
  await mkdir(dataDir, { recursive: true })
  await writeFile(join(folder, 'redis.conf'), configurationOf(options, dataDir))
  let server = await start(options)
  return {
    url: `redis://${LOOPBACK}:${port}`,
    port,
    dataDir,
    get pid() {
      return server.pid
    },
    kill: (signal) => server.end(signal),
    async restart() {
      if (!server.hasEnded()) throw new Error(`Redis at port ${port} is still running`)
      server = await start(options)
    },
  }
}

/** The start of the answer to a command; null without an answer. */
export function queryRedis(port: number, command: string): Promise<string | null> {
  return firstAnswer(port, `${command}\r\n`, ANSWER_WITHIN_MS)
}

function start({ folder, port, life }: RedisOptions): Promise<ServerProcess> {
  const launch = {
    name: `Redis at port ${port}`,
    command: ['redis-server', join(folder, 'redis.conf')],
    logPath: join(folder, 'redis.log'),
    life,
  } as const
  // While it loads its data the answer is an error. A password error shows that it is up.
  const isReady = async () => /^(\+PONG|-NOAUTH)/.test((await queryRedis(port, 'PING')) ?? '')
  return ServerProcess.start(launch, isReady, UP_WITHIN_MS)
}

function configurationOf(
  { port, persistence, isClusterNode, settings }: RedisOptions,
  dataDir: string,
): string {
  const cluster = {
    'cluster-enabled': 'yes',
    'cluster-config-file': 'nodes.conf',
    'cluster-node-timeout': 5_000,
  }
  const lines = Object.entries({
    bind: LOOPBACK,
    port,
    dir: JSON.stringify(dataDir),
    'maxmemory-policy': 'noeviction',
    ...KEPT[persistence],
    ...(isClusterNode === true ? cluster : {}),
    ...settings,
  })
  return lines.map(([name, value]) => `${name} ${value}\n`).join('')
}
