import { existsSync } from 'node:fs'
import { mkdir, readdir, rm } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { startClickHouse } from '../clickhouse/clickhouse.js'
import { installJars, hasJars } from '../kafka/jars.js'
import { startKafka } from '../kafka/kafka.js'
import { startRedisCluster } from '../redis/redis-cluster.js'
import { startRedis } from '../redis/redis.js'
import { isFree, LOOPBACK } from './ports.js'
import { recordedProcess } from './process-record.js'

export type Kind = 'kafka' | 'redis' | 'clickhouse'

export interface DevelopmentServers {
  kind: Kind
  nodes: 1 | 3
  /** Port of the first node; the others follow. Ports between nodes are 10,000 above. Null: the default port. */
  port: number | null
  /** Has a folder for each kind, number of nodes and port. */
  root: string
  say: (line: string) => void
}

interface Location {
  folder: string
  ports: number[]
}

const DEFAULT_PORT: Readonly<Record<Kind, number>> = { kafka: 9092, redis: 6379, clickhouse: 8123 }
const NODE_PORT_OFFSET = 10_000
const JARS_ATTEMPTS = 3
const END_WITHIN_MS = 30_000
const POLL_EVERY_MS = 50

/**
 * Starts servers that continue after this process, on the data of their last run. Resolves with their folder and the
 * settings with which Mayfly connects to them.
 */
export async function startServers(
  servers: DevelopmentServers,
): Promise<{ folder: string; settings: string[] }> {
  const { kind, nodes, root, say } = servers
  const running = await runningFolders(kind, root)
  if (running.length > 0) {
    const processes = listed(running.map(({ pid }) => pid))
    throw new Error(`${kind} is already running, as process ${processes}; npm run ${kind}:stop ends it.`)
  }
  const first = servers.port ?? DEFAULT_PORT[kind]
  const ports = Array.from({ length: nodes }, (_, index) => first + index)
  await requireFreePorts(kind, kind === 'kafka' || nodes > 1 ? [...ports, ...ports.map(nodePort)] : ports)
  const folder = resolve(root, `${kind}-${nodes}-at-${first}`)
  await mkdir(folder, { recursive: true })
  return { folder, settings: await STARTS[kind]({ folder, ports }, say) }
}

/** Each resolves with the settings with which Mayfly connects. */
const STARTS: Readonly<
  Record<Kind, (location: Location, say: DevelopmentServers['say']) => Promise<string[]>>
> = {
  kafka,
  redis,
  clickhouse,
}

/** Stops all servers of that kind. Resolves with their process ids once they have ended. */
export async function stopServers(kind: Kind, root: string): Promise<number[]> {
  const running = await runningFolders(kind, root)
  await Promise.all(
    running.map(async ({ folder, pid }) => {
      process.kill(pid, 'SIGTERM')
      // SIGKILL, because nodes that end together may wait for each other. Acknowledged data is on disk.
      if (!(await hasEnded(folder, END_WITHIN_MS))) process.kill(pid, 'SIGKILL')
      if (!(await hasEnded(folder, END_WITHIN_MS))) throw new Error(`process ${pid} has not ended`)
      await rm(join(folder, 'pid'))
    }),
  )
  return running.map(({ pid }) => pid)
}

export function listed(pids: readonly number[]): string {
  return new Intl.ListFormat('en').format(pids.map(String))
}

async function kafka({ folder, ports }: Location, say: DevelopmentServers['say']): Promise<string[]> {
  if (!hasJars()) say('Fetching Kafka from Maven Central (43 MB), once.')
  const jars = await installJars({ attempts: JARS_ATTEMPTS })
  const pairs = ports.map((port) => ({ clients: port, controller: nodePort(port) }))
  const { brokers } = await startKafka({ jars, folder, ports: pairs, life: 'detached' })
  return [`KAFKA_BROKERS=${brokers.join(',')}`, `KAFKA_REPLICATION=${ports.length}`]
}

async function redis({ folder, ports }: Location): Promise<string[]> {
  const options = { persistence: 'append-only', life: 'detached' } as const
  const [port = 0, ...others] = ports
  const servers =
    others.length === 0
      ? [await startRedis({ ...options, folder: join(folder, 'node-1'), port })]
      : await startRedisCluster({ ...options, folder, ports })
  return [`REDIS_URL=${servers.map(({ url }) => url).join(',')}`]
}

async function clickhouse({ folder, ports: [port = 0] }: Location): Promise<string[]> {
  const options = { folder: join(folder, 'node-1'), port, life: 'detached' } as const
  return [`CLICKHOUSE_URL=${(await startClickHouse(options)).url}`]
}

async function requireFreePorts(kind: Kind, ports: readonly number[]): Promise<void> {
  const free = await Promise.all(ports.map((port) => isFree(port)))
  const taken = ports.filter((_, index) => free[index] === false).map((port) => `${LOOPBACK}:${port}`)
  if (taken.length === 0) return
  throw new Error(
    `${taken.join(', ')} is taken by something that was not started here: end it, ` +
      `or start elsewhere, as with: npm run ${kind}:start -- --port ${DEFAULT_PORT[kind] + 100}`,
  )
}

/** The folders of running nodes, with their processes. */
async function runningFolders(kind: Kind, root: string): Promise<{ folder: string; pid: number }[]> {
  const folders: string[] = []
  for (const place of await foldersIn(root, new RegExp(`^${kind}-`))) {
    folders.push(...(await foldersIn(place, /^node-/)))
  }
  return folders.flatMap((folder) => {
    const pid = recordedProcess(folder)
    return pid === null ? [] : [{ folder, pid }]
  })
}

async function foldersIn(folder: string, names: RegExp): Promise<string[]> {
  if (!existsSync(folder)) return []
  return (await readdir(folder)).filter((name) => names.test(name)).map((name) => resolve(folder, name))
}

async function hasEnded(folder: string, withinMs: number): Promise<boolean> {
  const deadline = Date.now() + withinMs
  while (recordedProcess(folder) !== null) {
    if (Date.now() > deadline) return false
    await pause(POLL_EVERY_MS)
  }
  return true
}

function nodePort(port: number): number {
  return port + NODE_PORT_OFFSET
}
