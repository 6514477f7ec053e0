import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import type { RedisServer } from '#infra/redis/redis.js'
import type { RedisCluster } from '#test/harness/redis.js'
import { until } from '#test/harness/until.js'
import { Redis } from 'ioredis'

const run = promisify(execFile)
const AGREED_WITHIN_MS = 30_000
const MOVED_WITHIN_MS = 120_000

interface ClusterNode {
  id: string
  server: RedisServer
  isMaster: boolean
  hasFailed: boolean
  /** Id of the master, if the node is a replica. */
  masterId: string
  slots: number
}

/** The roles and slots of the nodes of a Redis Cluster. */
export class ClusterNodes {
  constructor(private readonly cluster: RedisCluster) {}

  /** The master of all keys with a hash tag, and its replicas. */
  async servingTag(tag: string): Promise<{ master: RedisServer; replicas: RedisServer[] }> {
    const [first] = this.cluster.nodes
    if (first === undefined) throw new Error('the Cluster has no node')
    const port = await this.query(first, async (redis) => {
      const slot = await redis.cluster('KEYSLOT', `{${tag}}`)
      const ranges = await redis.cluster('SLOTS')
      return ranges.find(([from, to]) => from <= slot && slot <= to)?.[2]?.[1]
    })
    const nodes = await this.seenBy(first)
    const master = nodes.find(({ server }) => server.port === port)
    if (master === undefined) throw new Error(`no master serves {${tag}}`)
    const replicas = nodes.filter(({ masterId }) => masterId === master.id)
    return { master: master.server, replicas: replicas.map(({ server }) => server) }
  }

  /** Resolves once the node and another one agree that it is a master with slots, or a replica. */
  async untilRole(server: RedisServer, role: 'master' | 'replica', seenBy: RedisServer): Promise<void> {
    await until(
      `${server.url} to be a ${role}`,
      async () => {
        const views = await Promise.all([this.seenBy(server), this.seenBy(seenBy)]).catch(() => [])
        const itself = views.flatMap((nodes) => nodes.filter((node) => node.server === server))
        return (
          itself.length === 2 &&
          itself.every(({ isMaster, hasFailed, slots }) =>
            role === 'master' ? isMaster && !hasFailed && slots > 0 : !isMaster && !hasFailed,
          )
        )
      },
      AGREED_WITHIN_MS,
    )
  }

  /** Moves the first slots of one master to another with redis-cli, as an operator would. */
  async moveSlots(from: RedisServer, to: RedisServer, count: number): Promise<void> {
    const nodes = await this.seenBy(from)
    const [source, destination] = [from, to].map((server) => nodes.find((node) => node.server === server))
    if (source === undefined || destination === undefined) throw new Error('a node is not in the Cluster')
    const what = [
      '--cluster-from',
      source.id,
      '--cluster-to',
      destination.id,
      '--cluster-slots',
      String(count),
    ]
    const bounds = { timeout: MOVED_WITHIN_MS, killSignal: 'SIGKILL', maxBuffer: 64 * 1024 * 1024 } as const
    await run(
      'redis-cli',
      ['--cluster', 'reshard', `127.0.0.1:${from.port}`, ...what, '--cluster-yes'],
      bounds,
    )
  }

  private async seenBy(server: RedisServer): Promise<ClusterNode[]> {
    const text = await this.query(server, async (redis) => String(await redis.cluster('NODES')))
    return text.split('\n').flatMap((line) => {
      const [id = '', address = '', flags = '', masterId = '', , , , , ...ranges] = line.split(' ')
      const port = Number(/:(\d+)@/.exec(address)?.[1])
      const node = this.cluster.nodes.find((each) => each.port === port)
      if (node === undefined) return []
      const slots = ranges.reduce((sum, range) => sum + sizeOf(range), 0)
      const isMaster = flags.includes('master')
      return [{ id, server: node, isMaster, hasFailed: flags.includes('fail'), masterId, slots }]
    })
  }

  private async query<Answer>(server: RedisServer, run: (redis: Redis) => Promise<Answer>): Promise<Answer> {
    const redis = new Redis(server.url, {
      commandTimeout: 2_000,
      retryStrategy: () => null,
      lazyConnect: true,
    })
    redis.on('error', () => undefined)
    try {
      await redis.connect()
      return await run(redis)
    } finally {
      redis.disconnect()
    }
  }
}

function sizeOf(range: string): number {
  const [from, to = from] = range.split('-').map(Number)
  return range.startsWith('[') || from === undefined || to === undefined ? 0 : to - from + 1
}
