import { Cluster, type Redis } from 'ioredis'
import { answerOf } from './answer.js'
import { reasonOf, refusalOf, RedisSetupError } from './connection-fault.js'
import type { RedisClient } from './redis-client.js'

const LEAST_VERSION = 7

/**
 * Resolves if every master is fit to hold Mayfly's state, and every replica that answers is fit to replace one.
 * Otherwise rejects with RedisSetupError, which names each fault and what to do about it.
 */
export async function checkRedis(client: RedisClient): Promise<void> {
  const isCluster = client instanceof Cluster
  const masters = isCluster ? client.nodes('master') : [client]
  const replicas = isCluster ? client.nodes('slave') : []
  const faults = await Promise.all([
    ...masters.map(async (node) => {
      const info = await infoOf(node)
      return typeof info === 'string'
        ? [`${placeOf(node)} gives no answer: ${info}`]
        : faultsIn(info, node, isCluster)
    }),
    ...replicas.map((node) => faultsOfMember(node)),
  ])
  const all = faults.flat()
  if (masters.length === 0) all.push('no master of the Redis Cluster can be reached')
  if (all.length > 0) throw new RedisSetupError(all.join('; '))
}

/** Reports each node that joins a Cluster later and is not fit for it, at each connection to it. */
export function watchJoining(client: RedisClient, onFault: (error: RedisSetupError) => void): void {
  if (!(client instanceof Cluster)) return
  client.on('+node', (node: Redis) => {
    const check = async () => {
      const faults = await faultsOfMember(node)
      if (faults.length > 0) onFault(new RedisSetupError(faults.join('; ')))
    }
    node.on('ready', () => void check())
    if (node.status === 'ready') void check()
  })
}

/** Of a node of a Cluster in whichever part; none if it does not answer. */
async function faultsOfMember(node: Redis): Promise<string[]> {
  const info = await infoOf(node)
  return typeof info === 'string' ? [] : faultsIn({ ...info, role: 'master' }, node, true)
}

type Info = Partial<Record<string, string>>

/** What INFO says, or why it was not answered. */
async function infoOf(node: Redis): Promise<Info | string> {
  const reason = (error: unknown) => refusalOf(error) ?? reasonOf(error)
  try {
    // INFO shows the policy even if CONFIG is not allowed, as on hosted servers.
    return fieldsOf(
      await answerOf(
        () => node.info(),
        (cause) => new Error(reason(cause), { cause }),
      ),
    )
  } catch (error) {
    return reason(error)
  }
}

function placeOf(node: Redis): string {
  return `Redis at ${node.options.host ?? ''}:${node.options.port ?? ''}`
}

function faultsIn(info: Info, node: Redis, isOfCluster: boolean): string[] {
  const place = placeOf(node)
  const { redis_version: version = '', maxmemory_policy: policy, role, cluster_enabled: cluster } = info
  const faults: string[] = []
  if (Number.parseInt(version) < LEAST_VERSION) {
    faults.push(`${place} is version ${version}: version ${LEAST_VERSION} or later is needed`)
  }
  if (policy !== 'noeviction') {
    faults.push(
      `${place} has maxmemory-policy ${policy ?? 'unknown'} and may drop what Mayfly keeps there: ` +
        'set `maxmemory-policy noeviction`',
    )
  }
  if (role !== 'master') faults.push(`${place} is a replica: give the address of its master in REDIS_URL`)
  if (cluster === '1' && !isOfCluster) {
    faults.push(`${place} is a node of a Cluster: give several of its nodes in REDIS_URL, with commas`)
  }
  return faults
}

function fieldsOf(info: string): Info {
  return Object.fromEntries(
    info.split('\r\n').flatMap((line) => {
      const at = line.indexOf(':')
      return at < 0 ? [] : [[line.slice(0, at), line.slice(at + 1)]]
    }),
  )
}
