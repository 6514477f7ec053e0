import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { setTimeout as pause } from 'node:timers/promises'
import { LOOPBACK } from '../servers/ports.js'
import { askRedis, startRedis, type RedisOptions, type RedisServer } from './redis.js'

const run = promisify(execFile)
const FORMED_WITHIN_MS = 30_000
const LOOK_EVERY_MS = 50

export interface RedisClusterOptions extends Omit<RedisOptions, 'port' | 'isClusterNode'> {
  /** One for each master, three at least; each listens 10,000 above its own too. */
  ports: readonly number[]
}

/** Masters with all slots among them; resolves once each says that the cluster is whole. */
export async function startRedisCluster({
  ports,
  folder,
  ...options
}: RedisClusterOptions): Promise<RedisServer[]> {
  const starts = await Promise.allSettled(
    ports.map((port, index) =>
      startRedis({ ...options, port, folder: join(folder, `node-${index + 1}`), isClusterNode: true }),
    ),
  )
  const nodes = starts.flatMap((result) => (result.status === 'fulfilled' ? [result.value] : []))
  try {
    const failed = starts.find((result) => result.status === 'rejected')
    if (failed !== undefined) throw failed.reason
    await form(ports, folder)
  } catch (error) {
    await Promise.all(nodes.map((node) => node.kill('SIGKILL')))
    throw error
  }
  return nodes
}

async function form(ports: readonly number[], folder: string): Promise<void> {
  const first = ports[0] ?? 0
  // Nodes of an earlier run know each other already.
  if ((await askRedis(first, 'CLUSTER INFO'))?.includes('cluster_known_nodes:1\r\n') === true) {
    const addresses = ports.map((port) => `${LOOPBACK}:${port}`)
    const bounds = { timeout: FORMED_WITHIN_MS, killSignal: 'SIGKILL' } as const
    await run('redis-cli', ['--cluster', 'create', ...addresses, '--cluster-yes'], bounds)
  }
  const deadline = Date.now() + FORMED_WITHIN_MS
  while (!(await isWhole(ports))) {
    if (Date.now() > deadline) {
      throw new Error(`the Redis Cluster in ${folder} is not whole after ${FORMED_WITHIN_MS} ms`)
    }
    await pause(LOOK_EVERY_MS)
  }
}

async function isWhole(ports: readonly number[]): Promise<boolean> {
  const states = await Promise.all(ports.map((port) => askRedis(port, 'CLUSTER INFO')))
  const known = `cluster_known_nodes:${ports.length}\r\n`
  return states.every((state) => state?.includes('cluster_state:ok') === true && state.includes(known))
}
