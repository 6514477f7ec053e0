import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { firstAnswer, LOOPBACK } from '../servers/ports.js'
import { ServerProcess, type Life } from '../servers/server-process.js'

/*
 * The machine's redis-server on the loopback, with `noeviction` as Mayfly needs it. Its folder holds redis.conf,
 * redis.log and data/. Nothing but this machine may reach it: it asks for no password.
 */

/** What outlives the process: nothing; every write, within a second; what SAVE, BGSAVE or SIGTERM dumped. */
export type Persistence = 'none' | 'append-only' | 'dump'

export interface RedisOptions {
  folder: string
  port: number
  persistence: Persistence
  life: Life
  /** Whether it is a node of a Cluster. */
  isClusterNode?: boolean
  /** More lines of redis.conf, or others instead. */
  settings?: Readonly<Record<string, string | number>>
}

export interface RedisServer {
  readonly url: string
  readonly port: number
  readonly pid: number
  /** Folder of its dump, its append-only files, its Cluster's nodes.conf. */
  readonly dataDir: string
  /** Sends a signal; where it is one that ends a process, resolves once the server has ended. */
  kill(signal: NodeJS.Signals): Promise<void>
  /** Starts it, once it has ended, on the same data and port; resolves once it answers. */
  startAgain(): Promise<void>
}

const UP_WITHIN_MS = 30_000
const ANSWER_WITHIN_MS = 1_000

const KEPT: Readonly<Record<Persistence, Record<string, string>>> = {
  none: { save: '""', appendonly: 'no' },
  'append-only': { save: '""', appendonly: 'yes', appendfsync: 'everysec' },
  dump: { save: '3600 1', appendonly: 'no' },
}

/** Resolves once it answers. */
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
    async startAgain() {
      if (!server.hasEnded()) throw new Error(`Redis at port ${port} runs still`)
      server = await start(options)
    },
  }
}

/** The beginning of the answer to a command; null if none comes. */
export function askRedis(port: number, command: string): Promise<string | null> {
  return firstAnswer(port, `${command}\r\n`, ANSWER_WITHIN_MS)
}

function start({ folder, port, life }: RedisOptions): Promise<ServerProcess> {
  const launch = {
    name: `Redis at port ${port}`,
    command: ['redis-server', join(folder, 'redis.conf')],
    logPath: join(folder, 'redis.log'),
    life,
  } as const
  // While it loads its data it answers otherwise; one with a password is there as well.
  const isReady = async () => /^(\+PONG|-NOAUTH)/.test((await askRedis(port, 'PING')) ?? '')
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
