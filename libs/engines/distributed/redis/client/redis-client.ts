import { isIP } from 'node:net'
import { Cluster, Redis } from 'ioredis'
import { LRUCache } from 'lru-cache'
import { beforeDeadline } from '#libs/runtime/timing/waiting.js'
import { BULK_TIMEOUT_MS, COMMAND_TIMEOUT_MS } from './answer.js'
import { connectionFault, reasonOf, RedisSetupError } from './connection-fault.js'

/*
 * How Mayfly connects to Redis. Relies on ioredis 6: a command without an answer is given up after `commandTimeout`,
 * a socket on which none comes at all is closed after `socketTimeout` (a peer that is gone without a word), and the
 * client connects again by itself. On one node nothing is queued while there is no connection, and nothing is sent a
 * second time after one was lost: what is asked for then fails at once, and who asked decides. In a Cluster what was
 * under way on a connection that is lost is sent again, for a moment, wherever its slot is by then: after its caller
 * has given it up, too. So every command is one that may come twice, or late.
 */

export type RedisClient = Redis | Cluster

interface RedisClientOptions {
  /** For values as large as a mail: commands may take longer, and hold up no others. */
  isForBulk?: boolean
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
const MAX_RETRY_MS = 1_000
const DEMOTED_AGAIN_MS = 5_000
const SAME_ERROR_AFTER_MS = 10_000

function commonOptions({ isForBulk = false, name }: RedisClientOptions) {
  return {
    connectionName: name,
    commandTimeout: isForBulk ? BULK_TIMEOUT_MS : COMMAND_TIMEOUT_MS,
    socketTimeout: isForBulk ? BULK_TIMEOUT_MS : SOCKET_TIMEOUT_MS,
    connectTimeout: CONNECT_TIMEOUT_MS,
    keepAlive: KEEP_ALIVE_MS,
    maxRetriesPerRequest: 0,
    // A command that a user may lack the right to, and that nobody needs.
    disableClientInfo: true,
  } as const
}

/** Resolves once connected; rejects with RedisSetupError if that fails at first. */
export async function openRedis(options: RedisClientOptions): Promise<RedisClient> {
  const { urls, tls, onError } = options
  const isSecured = urls.some((url) => /^rediss:/i.test(url))
  const spoken = { isSecured, hasCertificate: (tls?.cert ?? null) !== null }
  const client = urls.length > 1 ? clusterOf(options) : nodeOf(options)
  const errorEvents = client instanceof Cluster ? ['error', 'node error'] : ['error']
  let fault: unknown = null
  const onFirstError = (error: unknown) => (fault = error)
  for (const event of errorEvents) client.on(event, onFirstError)
  try {
    // A Cluster that is disconnected while it waits for a node never reports it.
    await beforeDeadline(READY_WITHIN_MS, client.connect())
  } catch (error) {
    client.disconnect()
    const cause = fault ?? error
    throw new RedisSetupError(
      `Redis can't be reached at ${urls.map(withoutSecrets).join(', ')} (REDIS_URL): ${connectionFault(cause, spoken)}`,
      { cause },
    )
  }
  const report = onceAWhile(onError)
  for (const event of errorEvents) client.off(event, onFirstError).on(event, report)
  return client
}

/** Calls the listener after each lost connection: the next one may lead to a Redis that has less than this one had. */
export function onInterruption(client: RedisClient, listener: () => void): void {
  if (client instanceof Cluster) client.on('-node', listener)
  else client.on('close', listener)
}

function nodeOf(options: RedisClientOptions): Redis {
  const { isSecured, db, ...address } = addressIn(options.urls[0] ?? '')
  // A name, unlike an address, is sent to the server, which may have several certificates (RFC 6066, section 3).
  const servername = isIP(address.host) === 0 ? address.host : undefined
  return new Redis({
    ...address,
    ...commonOptions(options),
    ...(isSecured ? { tls: { ...tlsOf(options), servername } } : {}),
    db,
    lazyConnect: true,
    enableOfflineQueue: false,
    retryStrategy: retryDelayMs,
    reconnectOnError: onceDemoted(),
  })
}

/**
 * Behind a name that a failover gives to another node, a connection may go on to the old master, which is a replica
 * now: it is made anew, not more often than every few seconds, since a replica still answers reads.
 */
function onceDemoted(): (error: Error) => boolean {
  let lastAtMs = -Infinity
  return ({ message }) => {
    const nowMs = performance.now()
    if (!message.startsWith('READONLY') || nowMs - lastAtMs < DEMOTED_AGAIN_MS) return false
    lastAtMs = nowMs
    return true
  }
}

function clusterOf(options: RedisClientOptions): Cluster {
  const nodes = options.urls.map(addressIn)
  if (nodes.some(({ db }) => db !== 0)) throw new RedisSetupError('a Redis Cluster has database 0 alone')
  // Nodes that the Cluster names are reached with the user and TLS of the first address.
  const { username, password, isSecured } = addressIn(options.urls[0] ?? '')
  const secured = isSecured ? { tls: tlsOf(options) } : {}
  return new Cluster(
    nodes.map(({ host, port }) => ({ host, port })),
    {
      lazyConnect: true,
      enableOfflineQueue: false,
      clusterRetryStrategy: retryDelayMs,
      redisOptions: { ...commonOptions(options), ...secured, username, password },
      // A certificate speaks of names: none is turned into a number beforehand.
      ...(isSecured ? { dnsLookup: (host, done) => done(null, host) } : {}),
    },
  )
}

function tlsOf({ tls }: RedisClientOptions) {
  return { ca: tls?.ca ?? undefined, cert: tls?.cert ?? undefined, key: tls?.key ?? undefined }
}

/** A Cluster tries again many times a second, and says so each time. */
function onceAWhile(onError: (error: unknown) => void): (error: unknown) => void {
  const reported = new LRUCache<string, true>({ max: 100, ttl: SAME_ERROR_AFTER_MS })
  return (error) => {
    const reason = reasonOf(error)
    if (reported.has(reason)) return
    reported.set(reason, true)
    onError(error)
  }
}

function retryDelayMs(attempt: number): number {
  return Math.min(attempt * 100, MAX_RETRY_MS)
}

/** What an address of a node says. Throws RedisSetupError if it says nothing of use. */
function addressIn(text: string) {
  const url = URL.parse(text)
  // What can't be read may have its password anywhere: nothing of it is shown.
  if (url === null) throw new RedisSetupError('REDIS_URL is not redis://user:password@host:port/database')
  const { protocol, hostname, port, username, password, pathname } = url
  if (!/^(\/\d*)?$/.test(pathname)) throw new RedisSetupError('the database in REDIS_URL is not a number')
  return {
    host: hostname.replace(/^\[(.*)\]$/, '$1'),
    port: port === '' ? 6379 : Number(port),
    db: Number(pathname.slice(1)),
    username: decoded(username),
    password: decoded(password),
    /** Whether over TLS. */
    isSecured: protocol === 'rediss:',
  }
}

function decoded(part: string): string | undefined {
  try {
    return part === '' ? undefined : decodeURIComponent(part)
  } catch (cause) {
    throw new RedisSetupError('REDIS_URL has a user or password with a % that must be written %25', { cause })
  }
}

/** An address as it may be shown: without user and password. */
function withoutSecrets(text: string): string {
  const url = URL.parse(text)
  return url === null ? 'an address that is none' : `${url.protocol}//${url.host}`
}
