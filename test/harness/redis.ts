import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import * as cluster from '#infra/redis/redis-cluster.js'
import * as redis from '#infra/redis/redis.js'
import { freePort, freePorts } from '#infra/servers/ports.js'
import type { Life } from '#infra/servers/server-process.js'

/** A Redis of a suite's own, that ends with the suite's process at the latest. */
export interface RedisServer extends redis.RedisServer {
  /** Ends it and removes its data. */
  dispose(): Promise<void>
}

export interface RedisCluster {
  urls: string[]
  nodes: redis.RedisServer[]
  /** Ends every node and removes their data. */
  dispose(): Promise<void>
}

export interface StartRedisOptions {
  /** In memory alone, unless told otherwise. */
  persistence?: redis.Persistence
  /** More lines of redis.conf, or others instead. */
  settings?: redis.RedisOptions['settings']
}

/** Resolves once it answers, on a free port and an empty folder. */
export async function startRedis({
  persistence = 'none',
  settings = {},
}: StartRedisOptions = {}): Promise<RedisServer> {
  const port = await freePort()
  return inFolder(async (folder, life) => {
    const server = await redis.startRedis({ folder, port, persistence, settings, life })
    return { made: server, nodes: [server] }
  })
}

/** Three masters, and their replicas; resolves once the cluster is whole, on free ports and empty folders. */
export async function startRedisCluster({
  persistence = 'none',
  settings = {},
  replicas = 0,
}: StartRedisOptions & { replicas?: number } = {}): Promise<RedisCluster> {
  const ports = await freePorts(3 + 3 * replicas)
  return inFolder(async (folder, life) => {
    const nodes = await cluster.startRedisCluster({ folder, ports, replicas, persistence, settings, life })
    return { made: { urls: nodes.map(({ url }) => url), nodes }, nodes }
  })
}

interface Started<Made> {
  made: Made
  nodes: readonly redis.RedisServer[]
}

async function inFolder<Made extends object>(
  start: (folder: string, life: Life) => Promise<Started<Made>>,
): Promise<Made & { dispose(): Promise<void> }> {
  const folder = await mkdtemp(join(tmpdir(), 'mayfly-redis-'))
  const remove = () => rm(folder, { recursive: true, force: true })
  try {
    const { made, nodes } = await start(folder, { endsWithOwner: true, removing: folder })
    const dispose = async () => {
      await Promise.all(nodes.map((node) => node.kill('SIGKILL')))
      await remove()
    }
    return Object.assign(made, { dispose })
  } catch (error) {
    await remove()
    throw error
  }
}
