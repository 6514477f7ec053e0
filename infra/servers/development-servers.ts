import { existsSync } from 'node:fs'
import { mkdir, readdir, rm } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { startClickHouse } from '../clickhouse/clickhouse.js'
import { bringJars, hasJars } from '../kafka/jars.js'
import { startKafka } from '../kafka/kafka.js'
import { startRedisCluster } from '../redis/redis-cluster.js'
import { startRedis } from '../redis/redis.js'
import { isFree, LOOPBACK } from './ports.js'
import { recordedProcess } from './process-record.js'

export type Kind = 'kafka' | 'redis' | 'clickhouse'

export interface DevelopmentServers {
  kind: Kind
  nodes: 1 | 3
  /** Of the first node, the others' follow it; what nodes have among each other is 10,000 above. Null: the usual. */
  port: number | null
  /** Holds a folder for each kind, number of nodes and port. */
  root: string
  say: (line: string) => void
}

interface Place {
  folder: string
  ports: number[]
}

const USUAL_PORT: Readonly<Record<Kind, number>> = { kafka: 9092, redis: 6379, clickhouse: 8123 }
const AMONG_NODES = 10_000
const JARS_ATTEMPTS = 3
const END_WITHIN_MS = 30_000
const LOOK_EVERY_MS = 50

/**
 * Starts servers that outlive this process, on the data of their last run; resolves with their folder, and the
 * settings of Mayfly that lead to them.
 */
export async function startServers(
  servers: DevelopmentServers,
): Promise<{ folder: string; settings: string[] }> {
  const { kind, nodes, root, say } = servers
  const running = await runningFolders(kind, root)
  if (running.length > 0) {
    const processes = listed(running.map(({ pid }) => pid))
    throw new Error(`${kind} runs already, as process ${processes}; npm run ${kind}:stop ends it.`)
  }
  const first = servers.port ?? USUAL_PORT[kind]
  const ports = Array.from({ length: nodes }, (_, index) => first + index)
  await mustBeFree(kind, kind === 'kafka' || nodes > 1 ? [...ports, ...ports.map(amongNodes)] : ports)
  const folder = resolve(root, `${kind}-${nodes}-at-${first}`)
  await mkdir(folder, { recursive: true })
  return { folder, settings: await STARTS[kind]({ folder, ports }, say) }
}

/** Each resolves with the settings of Mayfly that lead to what it started. */
const STARTS: Readonly<Record<Kind, (place: Place, say: DevelopmentServers['say']) => Promise<string[]>>> = {
  kafka,
  redis,
  clickhouse,
}

/** Resolves with the process ids of all servers of that kind once they have ended. */
export async function stopServers(kind: Kind, root: string): Promise<number[]> {
  const running = await runningFolders(kind, root)
  await Promise.all(
    running.map(async ({ folder, pid }) => {
      process.kill(pid, 'SIGTERM')
      // Nodes that go together may wait for each other in vain; what they have promised is on disk.
      if (!(await hasEnded(folder, END_WITHIN_MS))) process.kill(pid, 'SIGKILL')
      if (!(await hasEnded(folder, END_WITHIN_MS))) throw new Error(`process ${pid} does not end`)
      await rm(join(folder, 'pid'))
    }),
  )
  return running.map(({ pid }) => pid)
}

export function listed(pids: readonly number[]): string {
  return new Intl.ListFormat('en').format(pids.map(String))
}

async function kafka({ folder, ports }: Place, say: DevelopmentServers['say']): Promise<string[]> {
  if (!hasJars()) say('Fetching Kafka from Maven Central (43 MB), once.')
  const jars = await bringJars({ attempts: JARS_ATTEMPTS })
  const pairs = ports.map((port) => ({ clients: port, controller: amongNodes(port) }))
  const { brokers } = await startKafka({ jars, folder, ports: pairs, life: 'detached' })
  return [`KAFKA_BROKERS=${brokers.join(',')}`, `KAFKA_REPLICATION=${ports.length}`]
}

async function redis({ folder, ports }: Place): Promise<string[]> {
  const options = { persistence: 'append-only', life: 'detached' } as const
  const [port = 0, ...others] = ports
  const servers =
    others.length === 0
      ? [await startRedis({ ...options, folder: join(folder, 'node-1'), port })]
      : await startRedisCluster({ ...options, folder, ports })
  return [`REDIS_URL=${servers.map(({ url }) => url).join(',')}`]
}

async function clickhouse({ folder, ports: [port = 0] }: Place): Promise<string[]> {
  const options = { folder: join(folder, 'node-1'), port, life: 'detached' } as const
  return [`CLICKHOUSE_URL=${(await startClickHouse(options)).url}`]
}

async function mustBeFree(kind: Kind, ports: readonly number[]): Promise<void> {
  const free = await Promise.all(ports.map((port) => isFree(port)))
  const taken = ports.filter((_, index) => free[index] === false).map((port) => `${LOOPBACK}:${port}`)
  if (taken.length === 0) return
  throw new Error(
    `${taken.join(', ')} is taken by something that was not started here: end it, ` +
      `or start elsewhere, as with: npm run ${kind}:start -- --port ${USUAL_PORT[kind] + 100}`,
  )
}

/** The folders of nodes that run, with their processes. */
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
    await pause(LOOK_EVERY_MS)
  }
  return true
}

function amongNodes(port: number): number {
  return port + AMONG_NODES
}
