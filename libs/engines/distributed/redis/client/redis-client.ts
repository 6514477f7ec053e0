import { isIP } from 'node:net'
import { Cluster, Redis } from 'ioredis'
import { LRUCache } from 'lru-cache'
import { beforeDeadline } from '#libs/runtime/timing.js'
import { BULK_TIMEOUT_MS, COMMAND_TIMEOUT_MS } from './answer.js'
import { connectionError, reasonOf, RedisSetupError } from './connection-error.js'

/*
 * Connects to Redis. Relies on ioredis 6: a command without an answer fails after `commandTimeout`, a socket without any
 * data is closed after `socketTimeout` (a dead peer), and the client reconnects by itself. With one node, commands are
 * neither queued while there is no connection, nor sent again after a connection was lost: they fail at once, and the
 * caller decides. In a Cluster, commands in progress on a lost connection are sent again for a short time, to the node that
 * has their slot by then, even after their caller has timed out. So every command must be safe if it is executed twice, or
 * late.
 */

export type RedisClient = Redis | Cluster

interface RedisClientOptions {
  /** For values as large as a mail: commands have a longer timeout. */
  isForBulk?: boolean
  /**
   * `redis://`, or `rediss://` for TLS, with user, password and, for a single node, database. Several URLs are nodes of one
   * Cluster.
   */
  urls: readonly string[]
  /** PEM text for `rediss://`. `ca` is null for the system's authorities, the others for no client certificate. */
  tls?: { ca: string | null; cert: string | null; key: string | null }
  /** The connection name in CLIENT LIST: letters, digits and dashes. */
  name: string
  /** Called if a connection is lost or fails, at most every 10 s with the same error. The client reconnects by itself. */
  onError: (error: unknown) => void
}

const SOCKET_TIMEOUT_MS = 5_000
const CONNECT_TIMEOUT_MS = 5_000
const READY_WITHIN_MS = 10_000
const KEEP_ALIVE_MS = 10_000
const MAX_RETRY_MS = 1_000
const RECONNECT_AFTER_MS = 5_000
const REPORT_AGAIN_AFTER_MS = 10_000

function commonOptions({ isForBulk = false, name }: RedisClientOptions) {
  return {
    connectionName: name,
    commandTimeout: isForBulk ? BULK_TIMEOUT_MS : COMMAND_TIMEOUT_MS,
    socketTimeout: isForBulk ? BULK_TIMEOUT_MS : SOCKET_TIMEOUT_MS,
    connectTimeout: CONNECT_TIMEOUT_MS,
    keepAlive: KEEP_ALIVE_MS,
    maxRetriesPerRequest: 0,
    // The user may lack the permission for this command, and it is not needed.
    disableClientInfo: true,
  } as const
}

/** Resolves once connected. Rejects with RedisSetupError if the first connection fails. */
export async function openRedis(options: RedisClientOptions): Promise<RedisClient> {
  const { urls, tls, onError } = options
  const usesTls = urls.some((url) => /^rediss:/i.test(url))
  const kind = { usesTls, hasCertificate: (tls?.cert ?? null) !== null }
  const client = urls.length > 1 ? clusterOf(options) : nodeOf(options)
  const errorEvents = client instanceof Cluster ? ['error', 'node error'] : ['error']
  let failure: unknown = null
  const onFirstError = (error: unknown) => (failure = error)
  for (const event of errorEvents) client.on(event, onFirstError)
  try {
    // The client of a Cluster does not reject if it is disconnected while it waits for a node.
    await beforeDeadline(READY_WITHIN_MS, client.connect())
  } catch (error) {
    client.disconnect()
    const cause = failure ?? error
    throw new RedisSetupError(
      `Redis can't be reached at ${urls.map(withoutSecrets).join(', ')} (REDIS_URL): ${connectionError(cause, kind)}`,
      { cause },
    )
  }
  const report = withoutRepeats(onError)
  for (const event of errorEvents) client.off(event, onFirstError).on(event, report)
  return client
}

/** Calls the listener after each lost connection. The next one may be to a Redis that has lost data. */
export function onInterruption(client: RedisClient, listener: () => void): void {
  if (client instanceof Cluster) client.on('-node', listener)
  else client.on('close', listener)
}

function nodeOf(options: RedisClientOptions): Redis {
  const { usesTls, db, ...address } = addressIn(options.urls[0] ?? '')
  // Only a host name is sent to the server, which may have several certificates (RFC 6066, section 3).
  const servername = isIP(address.host) === 0 ? address.host : undefined
  return new Redis({
    ...address,
    ...commonOptions(options),
    ...(usesTls ? { tls: { ...tlsOf(options), servername } } : {}),
    db,
    lazyConnect: true,
    enableOfflineQueue: false,
    retryStrategy: retryDelayMs,
    reconnectOnError: reconnectIfDemoted(),
  })
}

/**
 * If a failover moves a host name to another node, existing connections may still be to the old master, which is a replica
 * now. They are replaced, at most every few seconds, because a replica still serves reads.
 */
function reconnectIfDemoted(): (error: Error) => boolean {
  let lastAtMs = -Infinity
  return ({ message }) => {
    const nowMs = performance.now()
    if (!message.startsWith('READONLY') || nowMs - lastAtMs < RECONNECT_AFTER_MS) return false
    lastAtMs = nowMs
    return true
  }
}

function clusterOf(options: RedisClientOptions): Cluster {
  const nodes = options.urls.map(addressIn)
  if (nodes.some(({ db }) => db !== 0)) throw new RedisSetupError('a Redis Cluster has only database 0')
  // All nodes are connected to with the user and TLS of the first address.
  const { username, password, usesTls } = addressIn(options.urls[0] ?? '')
  const tls = usesTls ? { tls: tlsOf(options) } : {}
  return new Cluster(
    nodes.map(({ host, port }) => ({ host, port })),
    {
      lazyConnect: true,
      enableOfflineQueue: false,
      clusterRetryStrategy: retryDelayMs,
      redisOptions: { ...commonOptions(options), ...tls, username, password },
      // A certificate contains host names, so names must not be resolved to addresses.
      ...(usesTls ? { dnsLookup: (host, done) => done(null, host) } : {}),
    },
  )
}

function tlsOf({ tls }: RedisClientOptions) {
  return { ca: tls?.ca ?? undefined, cert: tls?.cert ?? undefined, key: tls?.key ?? undefined }
}

/** Drops repeated errors: the client of a Cluster retries many times a second, and emits an error each time. */
function withoutRepeats(onError: (error: unknown) => void): (error: unknown) => void {
  const reported = new LRUCache<string, true>({ max: 100, ttl: REPORT_AGAIN_AFTER_MS })
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

/** Parses the address of a node. Throws RedisSetupError if it is invalid. */
function addressIn(text: string) {
  const url = URL.parse(text)
  // An invalid URL may contain the password anywhere, so the error does not contain it.
  if (url === null) throw new RedisSetupError('REDIS_URL is not redis://user:password@host:port/database')
  const { protocol, hostname, port, username, password, pathname } = url
  if (!/^(\/\d*)?$/.test(pathname)) throw new RedisSetupError('the database in REDIS_URL is not a number')
  return {
    host: hostname.replace(/^\[(.*)\]$/, '$1'),
    port: port === '' ? 6379 : Number(port),
    db: Number(pathname.slice(1)),
    username: decoded(username),
    password: decoded(password),
    usesTls: protocol === 'rediss:',
  }
}

function decoded(part: string): string | undefined {
  try {
    return part === '' ? undefined : decodeURIComponent(part)
  } catch (cause) {
    throw new RedisSetupError('in REDIS_URL a % in the user or password must be written as %25', { cause })
  }
}

/** An address without user and password, for messages. */
function withoutSecrets(text: string): string {
  const url = URL.parse(text)
  return url === null ? 'an invalid address' : `${url.protocol}//${url.host}`
}
