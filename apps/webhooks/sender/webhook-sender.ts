import { createHmac, createSecretKey } from 'node:crypto'
import { LRUCache } from 'lru-cache'
import { type Dispatcher, Pool } from 'undici'
import { AttemptError } from '#libs/runtime/outbound/attempt-error.js'
import { Connector, CONNECTOR_BOUNDS } from '#libs/runtime/outbound/connector.js'
import {
  type DestinationPolicy,
  type DestinationSettings,
  policyOf,
  readDestination,
} from '#libs/runtime/outbound/destination.js'
import { GuardedClient, onIdleConnections } from '#libs/runtime/outbound/guarded-client.js'
import { exchange, failed, type AttemptOutcome, type ExchangeTimes } from './exchange.js'

const BOUNDS = {
  ...CONNECTOR_BOUNDS,
  /** The timeout of a response's content, after its headers. */
  contentMs: 3_000,
  /** How many pools of connections are kept: one for each owner and origin. */
  origins: 1_000,
  idleMs: 4_000,
  /** How long a connection is used. After that, the name is looked up and checked again. */
  connectionMs: 60_000,
}

export type SenderBounds = Readonly<typeof BOUNDS>

export interface WebhookSenderOptions extends DestinationSettings {
  /** The timeout of a whole attempt. */
  timeoutMs: number
  /** Null for the system's servers. */
  dnsServers: readonly string[] | null
  bounds?: Partial<SenderBounds>
  /** Replaces the policy of the settings. */
  policy?: DestinationPolicy
}

export interface Post {
  /** Connections are reused only within an owner, such as an account. */
  owner: string
  url: string
  /** The `webhook-id`: the same for every attempt. */
  id: string
  /** JSON. */
  body: Buffer
  /** The bytes after `whsec_`, the current secret first. */
  secrets: readonly Uint8Array[]
}

const MAX_HEADER_BYTES = 16 * 1_024
const USER_AGENT = 'Mayfly-Webhooks/1'

/** Posts webhooks to the endpoints of customers, which are untrusted. */
export class WebhookSender {
  private readonly bounds: SenderBounds
  private readonly policy: DestinationPolicy
  private readonly connector: Connector
  private readonly pools: LRUCache<string, Pool>
  private readonly attempts = new Set<Promise<unknown>>()
  private readonly closings = new Set<Promise<unknown>>()
  private isClosed = false

  constructor(private readonly options: WebhookSenderOptions) {
    const { allowPrivate, dnsServers, policy = policyOf(options) } = options
    this.bounds = { ...BOUNDS, ...options.bounds }
    this.policy = policy
    this.connector = new Connector({ ...this.bounds, policy, dnsServers, allowPrivate })
    this.pools = new LRUCache({
      max: this.bounds.origins,
      dispose: (pool) => trackUntilSettled(this.closings, pool.close()),
    })
  }

  /**
   * Makes one attempt, signed with the current time, and resolves with its outcome within the timeout. If a reused
   * connection was closed before the response, the request is sent once more on a new one. Rejects only for a mistake
   * of the caller: the sender is closed, or there is no secret.
   */
  async post(post: Post): Promise<AttemptOutcome> {
    if (this.isClosed) throw new Error('the webhook sender is closed')
    const attempt = this.attempt(post)
    trackUntilSettled(this.attempts, attempt)
    return attempt
  }

  /** Resolves once the attempts in progress have ended, within their timeout, and every connection is closed. */
  async close(): Promise<void> {
    this.isClosed = true
    await Promise.all(this.attempts)
    // Connections of attempts that timed out may still be opening.
    this.connector.close()
    this.pools.clear()
    await Promise.all(this.closings)
  }

  private async attempt(post: Post): Promise<AttemptOutcome> {
    const startedAt = performance.now()
    const { contentMs } = this.bounds
    const times = { startedAt, deadline: startedAt + this.options.timeoutMs, contentMs }
    const destination = readDestination(post.url, this.policy)
    if (destination instanceof AttemptError) return failed(destination, 0)
    const headers = {
      'content-type': 'application/json',
      'user-agent': USER_AGENT,
      ...signatureHeaders(post.id, new Date(), post.body, post.secrets),
    }
    const request = { ...destination, method: 'POST', headers, body: post.body } as const
    const outcome = await this.exchange(post.owner, request, times)
    const isStale = outcome.kind === 'failed' && outcome.reason === 'reset' && onIdleConnections.has(request)
    return isStale ? await this.exchange(post.owner, request, times) : outcome
  }

  /** After a failure, the owner's pool for the origin is closed; connections in use close after their requests. */
  private async exchange(
    owner: string,
    request: Dispatcher.DispatchOptions & { origin: string },
    times: ExchangeTimes,
  ): Promise<AttemptOutcome> {
    const name = `${owner} ${request.origin}`
    const pool = this.poolOf(name, request.origin)
    const outcome = await exchange(pool, request, times)
    const hasBroken = outcome.kind === 'failed' && outcome.reason !== 'redirect'
    if (hasBroken && this.pools.peek(name) === pool) this.pools.delete(name)
    return outcome
  }

  private poolOf(name: string, origin: string): Pool {
    const kept = this.pools.get(name)
    if (kept !== undefined) return kept
    const { bounds } = this
    const pool = new Pool(origin, {
      // Unlimited, because an attempt that waited for a connection would count as slow, or time out.
      connections: null,
      clientTtl: bounds.connectionMs,
      keepAliveTimeout: bounds.idleMs,
      keepAliveMaxTimeout: bounds.idleMs,
      maxHeaderSize: MAX_HEADER_BYTES,
      allowH2: false,
      // Attempts have their own timers, which count from their start and are precise to the millisecond.
      headersTimeout: 0,
      bodyTimeout: 0,
      factory: (url, options) => new GuardedClient(url, options, this.connector.connect),
    })
    this.pools.set(name, pool)
    return pool
  }
}

function trackUntilSettled(pending: Set<Promise<unknown>>, work: Promise<unknown>): void {
  const settled = work.catch(() => undefined).finally(() => pending.delete(settled))
  pending.add(settled)
}

/**
 * The headers of Standard Webhooks 1.0: the id by which receivers drop duplicates, the time, and a signature for each
 * secret, in their order. Secrets are the bytes after `whsec_`. Throws if there is none.
 */
export function signatureHeaders(id: string, at: Date, body: Uint8Array, secrets: readonly Uint8Array[]) {
  if (secrets.length === 0) throw new Error(`${id} has no secret to sign with`)
  const seconds = String(Math.floor(at.getTime() / 1_000))
  const signatures = secrets.map((secret) => {
    // Node takes several times as long to check a key that is plain bytes.
    const hmac = createHmac('sha256', createSecretKey(secret))
    return `v1,${hmac.update(`${id}.${seconds}.`).update(body).digest('base64')}`
  })
  return { 'webhook-id': id, 'webhook-timestamp': seconds, 'webhook-signature': signatures.join(' ') }
}
