import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { setTimeout as pause } from 'node:timers/promises'
import { LOOPBACK } from '../servers/ports.js'
import { queryRedis, startRedis, type RedisOptions, type RedisServer } from './redis.js'

const run = promisify(execFile)
const FORMED_WITHIN_MS = 30_000
const POLL_EVERY_MS = 50

export interface RedisClusterOptions extends Omit<RedisOptions, 'port' | 'isClusterNode'> {
  /** One port for each node, with at least three masters. Each node also listens 10,000 above it. */
  ports: readonly number[]
  /** Replicas of each master, 0 by default. */
  replicas?: number
}

/**
 * Starts masters, which share all slots, and then their replicas. Resolves once every node reports that the cluster is
 * complete, and each replica is in sync.
 */
export async function startRedisCluster({
  ports,
  folder,
  replicas = 0,
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
    await form(ports, replicas, folder)
  } catch (error) {
    await Promise.all(nodes.map((node) => node.kill('SIGKILL')))
    throw error
  }
  return nodes
}

async function form(ports: readonly number[], replicas: number, folder: string): Promise<void> {
  const first = ports[0] ?? 0
  // Nodes of an earlier run have their slots already, unless they were stopped while the slots were assigned.
  if ((await queryRedis(first, 'CLUSTER INFO'))?.includes('cluster_slots_assigned:16384\r\n') !== true) {
    await Promise.all(ports.map((port) => queryRedis(port, 'CLUSTER RESET')))
    const addresses = ports.map((port) => `${LOOPBACK}:${port}`)
    const bounds = { timeout: FORMED_WITHIN_MS, killSignal: 'SIGKILL' } as const
    const kind = ['--cluster-replicas', String(replicas), '--cluster-yes']
    await run('redis-cli', ['--cluster', 'create', ...addresses, ...kind], bounds)
  }
  const deadline = Date.now() + FORMED_WITHIN_MS
  while (!(await isComplete(ports))) {
    if (Date.now() > deadline) {
      throw new Error(`the Redis Cluster in ${folder} is not complete after ${FORMED_WITHIN_MS} ms`)
    }
    await pause(POLL_EVERY_MS)
  }
}

async function isComplete(ports: readonly number[]): Promise<boolean> {
  const states = await Promise.all(
    ports.map(async (port) => ({
      cluster: (await queryRedis(port, 'CLUSTER INFO')) ?? '',
      replication: (await queryRedis(port, 'INFO replication')) ?? '',
    })),
  )
  const known = `cluster_known_nodes:${ports.length}\r\n`
  return states.every(
    ({ cluster, replication }) =>
      cluster.includes('cluster_state:ok') &&
      cluster.includes(known) &&
      /role:master|master_link_status:up/.test(replication),
  )
}
