import { Cluster, type Redis } from 'ioredis'
import { answerOf } from './answer.js'
import { accessError, reasonOf, RedisSetupError } from './connection-error.js'
import type { RedisClient } from './redis-client.js'

const MIN_VERSION = 7

/**
 * Checks the version and configuration of every master, and of every replica that answers, since it may replace a master.
 * Rejects with RedisSetupError, which names each error and what to do about it.
 */
export async function checkRedis(client: RedisClient): Promise<void> {
  const isCluster = client instanceof Cluster
  const masters = isCluster ? client.nodes('master') : [client]
  const replicas = isCluster ? client.nodes('slave') : []
  const errors = await Promise.all([
    ...masters.map((node) =>
      infoOf(node).then(
        (info) => errorsIn(info, node, isCluster),
        (error: unknown) => [`${addressOf(node)} does not answer: ${reasonOf(error)}`],
      ),
    ),
    ...replicas.map((node) => errorsOfMember(node)),
  ])
  const all = errors.flat()
  if (masters.length === 0) all.push('no master of the Redis Cluster can be reached')
  if (all.length > 0) throw new RedisSetupError(all.join('; '))
}

/** Checks each node that joins a Cluster later, after every connection to it, and reports its errors. */
export function watchJoining(client: RedisClient, onError: (error: RedisSetupError) => void): void {
  if (!(client instanceof Cluster)) return
  client.on('+node', (node: Redis) => {
    const check = async () => {
      const errors = await errorsOfMember(node)
      if (errors.length > 0) onError(new RedisSetupError(errors.join('; ')))
    }
    node.on('ready', () => void check())
    if (node.status === 'ready') void check()
  })
}

/** The errors of a master or replica of a Cluster; none if it does not answer. */
async function errorsOfMember(node: Redis): Promise<string[]> {
  const info = await infoOf(node).catch(() => null)
  return info === null ? [] : errorsIn({ ...info, role: 'master' }, node, true)
}

type Info = Partial<Record<string, string>>

/** The fields of INFO, which contains the policy. CONFIG may not be allowed, as on hosted servers. */
async function infoOf(node: Redis): Promise<Info> {
  return fieldsOf(
    await answerOf(
      () => node.info(),
      (cause) => new Error(accessError(cause) ?? reasonOf(cause), { cause }),
    ),
  )
}

function addressOf(node: Redis): string {
  return `Redis at ${node.options.host ?? ''}:${node.options.port ?? ''}`
}

function errorsIn(info: Info, node: Redis, isOfCluster: boolean): string[] {
  const address = addressOf(node)
  const { redis_version: version = '', maxmemory_policy: policy, role, cluster_enabled: cluster } = info
  const errors: string[] = []
  if (Number.parseInt(version) < MIN_VERSION) {
    errors.push(`${address} has version ${version}: version ${MIN_VERSION} or later is required`)
  }
  if (policy !== 'noeviction') {
    errors.push(
      `${address} has maxmemory-policy ${policy ?? 'unknown'} and may evict Mayfly's keys: ` +
        'set `maxmemory-policy noeviction`',
    )
  }
  if (role !== 'master') errors.push(`${address} is a replica: set REDIS_URL to the address of its master`)
  if (cluster === '1' && !isOfCluster) {
    errors.push(
      `${address} is a node of a Cluster: set REDIS_URL to several of its nodes, separated by commas`,
    )
  }
  return errors
}

function fieldsOf(info: string): Info {
  return Object.fromEntries(
    info.split('\r\n').flatMap((line) => {
      const at = line.indexOf(':')
      return at < 0 ? [] : [[line.slice(0, at), line.slice(at + 1)]]
    }),
  )
}
