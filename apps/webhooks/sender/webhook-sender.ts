import { createHmac } from 'node:crypto'
import { LRUCache } from 'lru-cache'
import { type Dispatcher, Pool } from 'undici'
import { Connector } from './connector.js'
import { type DestinationPolicy, type DestinationSettings, policyOf, readDestination } from './destination.js'
import { Exchange, failed, GuardedClient } from './exchange.js'
import { AttemptFault, type AttemptOutcome } from './faults.js'

export interface SenderBounds {
  lookUpMs: number
  connectMs: number
  tlsMs: number
  /** For the content of an answer, once its headers have come. */
  contentMs: number
  /** Origins that connections are kept to, counted for each owner. */
  origins: number
  /** For which an idle connection is kept. */
  idleMs: number
  /** For which a connection is used: then the name is looked up, and checked, again. */
  connectionMs: number
  /** For which what DNS said is used. */
  dnsKeptMs: number
}

export interface WebhookSenderOptions extends DestinationSettings {
  /** For an attempt in all. */
  timeoutMs: number
  /** Null for the system's. */
  dnsServers: readonly string[] | null
  bounds?: Partial<SenderBounds>
  /** What may be sent to, in place of what the settings say. */
  policy?: DestinationPolicy
}

export interface Post {
  /** Whose kept connections it may use, such as an account. */
  owner: string
  url: string
  /** The `webhook-id`: the same for every attempt. */
  id: string
  /** JSON. */
  body: Buffer
  /** The bytes behind `whsec_`, the present one first. */
  secrets: readonly Uint8Array[]
}

const BOUNDS: SenderBounds = {
  lookUpMs: 5_000,
  connectMs: 5_000,
  tlsMs: 5_000,
  contentMs: 3_000,
  origins: 1_000,
  idleMs: 4_000,
  connectionMs: 60_000,
  dnsKeptMs: 10_000,
}
const MAX_HEADER_BYTES = 16 * 1_024
const USER_AGENT = 'Mayfly-Webhooks/1'

/** Posts what happened to the endpoints of customers, who may be anybody: nothing is taken on trust. */
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
    const asksMachine = allowPrivate && dnsServers === null
    this.connector = new Connector({ ...this.bounds, policy, dnsServers, asksMachine })
    this.pools = new LRUCache({
      max: this.bounds.origins,
      dispose: (pool) => addUntilOver(this.closings, pool.close()),
    })
  }

  /**
   * One attempt, signed at this moment, over within its time. Whatever the endpoint does is an outcome. An attempt
   * whose connection, kept from one before, has ended under it is made once more on a new one. Rejects if the
   * sender is closed or there is no secret: those are faults of the caller.
   */
  async post(post: Post): Promise<AttemptOutcome> {
    if (this.isClosed) throw new Error('the sender of webhooks is closed')
    const attempt = this.attempt(post)
    addUntilOver(this.attempts, attempt)
    return attempt
  }

  /** Resolves once the attempts under way are over, at most after their time, and every connection is closed. */
  async close(): Promise<void> {
    this.isClosed = true
    await Promise.all(this.attempts)
    // Connections that nobody waits for any more may still be opening.
    this.connector.close()
    this.pools.clear()
    await Promise.all(this.closings)
  }

  private async attempt(post: Post): Promise<AttemptOutcome> {
    const begunAt = performance.now()
    const deadline = begunAt + this.options.timeoutMs
    const destination = readDestination(post.url, this.policy)
    if (destination instanceof AttemptFault) return failed(destination, 0)
    const { origin, path } = destination
    const headers = {
      'content-type': 'application/json',
      'user-agent': USER_AGENT,
      ...signatureHeaders(post.id, new Date(), post.body, post.secrets),
    }
    const request = { origin, path, method: 'POST', headers, body: post.body }
    const begin = () => new Exchange(begunAt, deadline, this.bounds.contentMs)
    const first = begin()
    const outcome = await this.exchange(post.owner, request, first)
    const isStale = outcome.kind === 'failed' && outcome.reason === 'reset' && first.isOnKeptConnection
    return isStale ? await this.exchange(post.owner, request, begin()) : outcome
  }

  /** After a failure no connection of the owner to the origin is kept: those with requests end with these. */
  private async exchange(
    owner: string,
    request: Dispatcher.DispatchOptions & { origin: string },
    exchange: Exchange,
  ): Promise<AttemptOutcome> {
    const name = `${owner} ${request.origin}`
    const pool = this.poolOf(name, request.origin)
    pool.dispatch(request, exchange)
    const outcome = await exchange.outcome
    const isFault = outcome.kind === 'failed' && outcome.reason !== 'redirect'
    if (isFault && this.pools.peek(name) === pool) this.pools.delete(name)
    return outcome
  }

  private poolOf(name: string, origin: string): Pool {
    const kept = this.pools.get(name)
    if (kept !== undefined) return kept
    const { bounds } = this
    const pool = new Pool(origin, {
      // As many as there are attempts: one that waited for another would count as slow, or fail.
      connections: null,
      clientTtl: bounds.connectionMs,
      keepAliveTimeout: bounds.idleMs,
      keepAliveMaxTimeout: bounds.idleMs,
      maxHeaderSize: MAX_HEADER_BYTES,
      allowH2: false,
      // Each exchange has timers of its own, which count from its beginning and to the millisecond.
      headersTimeout: 0,
      bodyTimeout: 0,
      factory: (url, options) => new GuardedClient(url, options, this.connector.connect),
    })
    this.pools.set(name, pool)
    return pool
  }
}

/** Until it has succeeded or failed. */
function addUntilOver(works: Set<Promise<unknown>>, work: Promise<unknown>): void {
  const over = work.catch(() => undefined).finally(() => works.delete(over))
  works.add(over)
}

/**
 * The headers by which a receiver knows who sent the body, when, and whether it came before (Standard Webhooks 1.0):
 * a signature for each secret, in their order. Secrets are the bytes behind `whsec_`. Throws if there is none.
 */
export function signatureHeaders(id: string, at: Date, body: Uint8Array, secrets: readonly Uint8Array[]) {
  if (secrets.length === 0) throw new Error(`${id} has no secret to be signed with`)
  const seconds = String(Math.floor(at.getTime() / 1_000))
  const signatures = secrets.map(
    (secret) =>
      `v1,${createHmac('sha256', secret).update(`${id}.${seconds}.`).update(body).digest('base64')}`,
  )
  return { 'webhook-id': id, 'webhook-timestamp': seconds, 'webhook-signature': signatures.join(' ') }
}
