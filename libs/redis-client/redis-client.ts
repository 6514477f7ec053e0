import { Cluster, Redis } from 'ioredis'
import { isIP } from 'node:net'
import { answerOf, COMMAND_TIMEOUT_MS } from './answer.js'
import { connectionFault, reasonOf, refusalOf } from './connection-fault.js'
import { addressIn, withoutSecrets } from './redis-address.js'
import { RedisSetupError } from './setup-error.js'

/*
 * How Mayfly connects to Redis. Relies on ioredis 6: a command without an answer is given up after `commandTimeout`,
 * a socket on which none comes at all is closed after `socketTimeout` (a peer that is gone without a word), and the
 * client connects again by itself. Nothing is queued while there is no connection, and nothing is sent a second time
 * after one was lost: what is asked for then fails at once, and who asked decides.
 */

export type RedisClient = Redis | Cluster

export interface RedisClientOptions {
  /** `redis://` or, for TLS, `rediss://`, with user, password and, on one node, database; several are nodes of one Cluster. */
  urls: readonly string[]
  /** PEM text for `rediss://`: `ca` null for the system's authorities, the others for no certificate of the client's. */
  tls?: { ca: string | null; cert: string | null; key: string | null }
  /** Shown by CLIENT LIST: letters, digits and dashes. */
  name: string
  /** Told of each connection that is lost or can't be made, which is tried again; of the same not more often than every ten seconds. */
  onError: (error: unknown) => void
}

const SOCKET_TIMEOUT_MS = 5_000
const CONNECT_TIMEOUT_MS = 5_000
const READY_WITHIN_MS = 10_000
const KEEP_ALIVE_MS = 10_000
const MOST_RETRY_MS = 1_000
const SAME_ERROR_AFTER_MS = 10_000

const BOUNDS = {
  commandTimeout: COMMAND_TIMEOUT_MS,
  socketTimeout: SOCKET_TIMEOUT_MS,
  connectTimeout: CONNECT_TIMEOUT_MS,
  keepAlive: KEEP_ALIVE_MS,
  maxRetriesPerRequest: 0,
  // A command that a user may lack the right to, and that nobody needs.
  disableClientInfo: true,
} as const

/** Resolves once connected; rejects with RedisSetupError where that fails at first. */
export async function openRedis(options: RedisClientOptions): Promise<RedisClient> {
  const { urls, tls, onError } = options
  const isSecured = urls.some((url) => /^rediss:/i.test(url))
  const spoken = { isSecured, hasCertificate: (tls?.cert ?? null) !== null }
  const client = urls.length > 1 ? clusterOf(options) : nodeOf(options)
  let fault: unknown = null
  const onFirstError = (error: unknown) => (fault = error)
  client.on('error', onFirstError)
  if (client instanceof Cluster) client.on('node error', onFirstError)
  const late = Promise.withResolvers<never>()
  const timer = setTimeout(
    () => late.reject(new Error(`it gave no answer within ${READY_WITHIN_MS / 1_000} s`)),
    READY_WITHIN_MS,
  )
  try {
    // A Cluster that is disconnected while it waits for a node never tells so.
    await Promise.race([client.connect(), late.promise])
  } catch (error) {
    client.disconnect()
    const [cause = error] = [fault].filter((each) => each !== null)
    throw new RedisSetupError(
      `Redis can't be reached at ${urls.map(withoutSecrets).join(', ')} (REDIS_URL): ${connectionFault(cause, spoken)}`,
      { cause },
    )
  } finally {
    clearTimeout(timer)
  }
  client.off('error', onFirstError)
  if (client instanceof Cluster) client.off('node error', onFirstError)
  const tell = onceAWhile(onError)
  client.on('error', tell)
  if (client instanceof Cluster) client.on('node error', tell)
  return client
}

const LEAST_VERSION = 7

/**
 * Resolves where every master is fit to hold Mayfly's state; else rejects with RedisSetupError, which names each fault
 * and what to do about it.
 */
export async function checkRedis(client: RedisClient): Promise<void> {
  const nodes = client instanceof Cluster ? client.nodes('master') : [client]
  const faults = await Promise.all(nodes.map((node) => faultsOf(node, client instanceof Cluster)))
  const all = faults.flat()
  if (nodes.length === 0) all.push('no master of the Redis Cluster can be reached')
  if (all.length > 0) throw new RedisSetupError(all.join('; '))
}

async function faultsOf(node: Redis, isOfCluster: boolean): Promise<string[]> {
  const place = `Redis at ${node.options.host ?? ''}:${node.options.port ?? ''}`
  let info: string
  try {
    info = await answerOf(
      () => node.info(),
      (cause) => new RedisSetupError(reasonOf(cause), { cause }),
    )
  } catch (error) {
    return [`${place} gives no answer: ${refusalOf(error) ?? reasonOf(error)}`]
  }
  // INFO tells the policy also where CONFIG is not allowed, as with hosted ones.
  const {
    redis_version: version = '',
    maxmemory_policy: policy,
    role,
    cluster_enabled: cluster,
  } = fieldsOf(info)
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

function fieldsOf(info: string): Partial<Record<string, string>> {
  return Object.fromEntries(
    info.split('\r\n').flatMap((line) => {
      const at = line.indexOf(':')
      return at < 0 ? [] : [[line.slice(0, at), line.slice(at + 1)]]
    }),
  )
}

function nodeOf({ urls: [url = ''], tls, name }: RedisClientOptions): Redis {
  const { isSecured, db, ...address } = addressIn(url)
  return new Redis({
    ...address,
    ...BOUNDS,
    ...(isSecured ? { tls: { ...present(tls), ...indicated(address.host) } } : {}),
    db,
    connectionName: name,
    lazyConnect: true,
    enableOfflineQueue: false,
    retryStrategy: retryDelayMs,
  })
}

function clusterOf({ urls, tls, name }: RedisClientOptions): Cluster {
  const nodes = urls.map(addressIn)
  if (nodes.some(({ db }) => db !== 0)) throw new RedisSetupError('a Redis Cluster has database 0 alone')
  // The nodes that the Cluster tells of are reached with what the first address says.
  const { username, password, isSecured } = addressIn(urls[0] ?? '')
  const secured = isSecured ? { tls: present(tls) } : {}
  return new Cluster(
    nodes.map(({ host, port }) => ({ host, port })),
    {
      lazyConnect: true,
      enableOfflineQueue: false,
      clusterRetryStrategy: retryDelayMs,
      redisOptions: { ...BOUNDS, ...secured, username, password, connectionName: name },
      // A certificate speaks of names: none is turned into a number beforehand.
      ...(isSecured ? { dnsLookup: (host, done) => done(null, host) } : {}),
    },
  )
}

function present(tls: RedisClientOptions['tls']): Record<string, string> {
  const texts = Object.entries(tls ?? {})
  return Object.fromEntries(texts.filter((entry): entry is [string, string] => entry[1] !== null))
}

/** A name, unlike an address, is told to the server, which may have several certificates (RFC 6066, section 3). */
function indicated(host: string): { servername?: string } {
  return isIP(host) === 0 ? { servername: host } : {}
}

/** A Cluster tries again many times a second, and says so each time. */
function onceAWhile(onError: (error: unknown) => void): (error: unknown) => void {
  const toldAtMs = new Map<string, number>()
  return (error) => {
    const reason = reasonOf(error)
    const nowMs = performance.now()
    if (nowMs - (toldAtMs.get(reason) ?? -Infinity) < SAME_ERROR_AFTER_MS) return
    toldAtMs.set(reason, nowMs)
    onError(error)
  }
}

function retryDelayMs(attempt: number): number {
  return Math.min(attempt * 100, MOST_RETRY_MS)
}
