import * as cluster from '#infra/redis/redis-cluster.js'
import * as redis from '#infra/redis/redis.js'
import { freePort, freePorts } from '#infra/servers/ports.js'
import { inFolder } from './server-folder.js'

/** A Redis for one suite. It is stopped with the suite's process at the latest. */
export interface RedisServer extends redis.RedisServer {
  /** Stops it and removes its data. */
  dispose(): Promise<void>
}

export interface RedisCluster {
  urls: string[]
  nodes: redis.RedisServer[]
  /** Stops every node and removes their data. */
  dispose(): Promise<void>
}

export interface StartRedisOptions {
  /** By default `none`: in memory only. */
  persistence?: redis.Persistence
  /** Added to redis.conf; overrides the defaults. */
  settings?: redis.RedisOptions['settings']
}

/** Starts it on a free port and an empty folder. Resolves once it answers. */
export async function startRedis({
  persistence = 'none',
  settings = {},
}: StartRedisOptions = {}): Promise<RedisServer> {
  const port = await freePort()
  return inFolder('redis', (folder, life) => redis.startRedis({ folder, port, persistence, settings, life }))
}

/** Starts three masters and their replicas on free ports and empty folders. Resolves once the cluster is complete. */
export async function startRedisCluster({
  persistence = 'none',
  settings = {},
  replicas = 0,
}: StartRedisOptions & { replicas?: number } = {}): Promise<RedisCluster> {
  const ports = await freePorts(3 + 3 * replicas)
  return inFolder('redis', async (folder, life) => {
    const nodes = await cluster.startRedisCluster({ folder, ports, replicas, persistence, settings, life })
    return { urls: nodes.map(({ url }) => url), nodes }
  })
}
