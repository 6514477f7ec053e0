import { hash, hkdfSync } from 'node:crypto'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { IdempotencyStore, Repeatable, Run } from '#libs/ports/idempotency/idempotency-store.js'
import { pack, seal, secretKey, unpack, unseal, type SecretKey } from '#libs/ports/key-vault/sealing.js'
import { bearerSecretOf } from '../access/authenticator.js'
import { principalOf, type Principal } from '../access/principal.js'
import type { RequestBudgets } from '../http/budgets.js'
import { invalid, Problem } from '../http/problems.js'
import { bodyBytesOf } from '../http/request-bodies.js'
import { seededMinting, setMinting } from './minting.js'

/*
 * POST requests with an Idempotency-Key. The seed of a request's ids is stored before its handler runs. If the process
 * is killed, a repeat runs again with the same ids, so it adds nothing that is already on the log. The answer is
 * stored, encrypted, for further repeats. See docs/decisions/0013-repeated-requests.md.
 */

interface RunningRequest {
  run: Run
  secret: string
  renewal: NodeJS.Timeout
  isAnswerStored: boolean
}

const RUNNING = Symbol('running')
type IdempotentRequest = FastifyRequest & { [RUNNING]?: RunningRequest | undefined }

/** The lease of a run is renewed for this time. If it has no answer by then, a repeat may run. */
const MAX_RUN_MS = 60_000
/** One with 10,000 inboxes has 4 MiB, and a tenth of that compressed. */
const MAX_ANSWER_BYTES = 8 << 20
/** The headers that are stored with an answer. All others are set for each request. */
const STORED_HEADERS = ['content-type', 'location', 'link', 'mayfly-cursor', 'cache-control'] as const

export class Idempotency {
  /** `onUnstored` is called if an answer could not be stored. A repeat then runs again, with the same ids. */
  constructor(
    private readonly store: IdempotencyStore,
    private readonly budgets: RequestBudgets,
    private readonly onUnstored: (error: unknown) => void,
  ) {}

  /** Applies to every route that is registered after this call. */
  watch(server: FastifyInstance): void {
    server.addHook('preHandler', (request, reply) => this.begin(request, reply))
    server.addHook('onSend', (request, reply, payload) => this.end(request, reply, payload))
  }

  /** Runs the first request with a key. Answers a repeat with the stored answer, or refuses it. */
  private async begin(request: IdempotentRequest, reply: FastifyReply): Promise<FastifyReply | undefined> {
    if (request.is404) return undefined
    const key = idempotencyKeyOf(request)
    const principal = principalOf(request)
    const secret = bearerSecretOf(request)
    if (key === null || principal === null || secret === null) return undefined
    // A caller without access gets no stored answer. ScopeGuard refuses the request later.
    if (!principal.plan.hasApiAccess) return undefined
    const wanted = repeatableOf(request, principal, key, secret)
    const reserved = await this.store.reserve(wanted)
    switch (reserved.state) {
      case 'run':
        this.run(request, reserved.run, secret)
        return undefined
      case 'in-use':
        throw new Problem('idempotency-key-in-use', {
          detail: 'Another request with this Idempotency-Key is in progress.',
          headers: { 'retry-after': '1' },
        })
      case 'reused':
        throw reused(reserved.fingerprint, wanted.fingerprint)
      case 'stored': {
        const { status, headers, size, packed } = openAnswer(reserved.answer, secret, wanted.id)
        await this.budgets.holdAnswer(reply, size)
        return reply
          .code(status)
          .headers({ ...headers, 'idempotent-replayed': 'true' })
          .send(await unpack(packed, size))
      }
    }
  }

  private run(request: IdempotentRequest, run: Run, secret: string): void {
    const { store, onUnstored } = this
    const endsAtMs = performance.now() + MAX_RUN_MS
    const renewal = setInterval(() => {
      if (performance.now() > endsAtMs) clearInterval(renewal)
      else store.renew(run).catch(onUnstored)
    }, store.leaseMs / 3).unref()
    request[RUNNING] = { run, secret, renewal, isAnswerStored: true }
    setMinting(request, seededMinting(run, secret))
  }

  /** Resolves once the answer may be sent, also if the store fails. */
  private async end(request: IdempotentRequest, reply: FastifyReply, payload: unknown): Promise<unknown> {
    const running = request[RUNNING]
    if (running === undefined) return payload
    request[RUNNING] = undefined
    clearInterval(running.renewal)
    await this.storeAnswer(running, reply, payload).catch(this.onUnstored)
    return payload
  }

  private async storeAnswer(
    { run, secret, isAnswerStored }: RunningRequest,
    reply: FastifyReply,
    payload: unknown,
  ): Promise<void> {
    const { store } = this
    const { statusCode: status } = reply
    if (status >= 500) return store.release(run, 'resumable')
    // 404 and 410 are results of the request. Any other refusal means that nothing was done.
    if (status >= 300 && status !== 404 && status !== 410) return store.release(run, 'undone')
    const body = isAnswerStored ? bytesOf(payload) : null
    if (body === null || body.length > MAX_ANSWER_BYTES) return store.release(run, 'resumable')
    const answer = { status, headers: storedHeaders(reply), size: body.length, packed: await pack(body) }
    return store.finish(run, sealAnswer(answer, secret, run.id))
  }
}

/**
 * Keeps the answer of a request from being stored. A repeat runs again. For answers with content of mail, which would be
 * readable after the mail is erased.
 */
export function keepAnswerUnstored(request: FastifyRequest): void {
  const running = (request as IdempotentRequest)[RUNNING]
  if (running !== undefined) running.isAnswerStored = false
}

/**
 * The id and the fingerprint of a request. A reader of the store can't derive the client's key, the secret or the body
 * from them. The fingerprint includes the inbox password, since a stored answer is sent before a password is checked.
 */
function repeatableOf(
  request: FastifyRequest,
  { countedBy, inboxPassword }: Principal,
  key: string,
  secret: string,
): Repeatable {
  const id = hash('sha256', `${countedBy} ${key}`)
  const digest = hash('sha256', bodyBytesOf(request))
  const password = inboxPassword === null ? '' : ` ${inboxPassword}`
  const inputs = [secret, `${secret} ${request.method} ${request.url} ${digest}${password}`]
  const [ofSecret = '', ofRequest = ''] = inputs.map((input) =>
    Buffer.from(hkdfSync('sha256', input, id, 'mayfly fingerprint', 16)).toString('hex'),
  )
  return { id, fingerprint: `${ofSecret}.${ofRequest}` }
}

function reused(stored: string, sent: string): Problem {
  const [[ofSecret], [otherSecret]] = [stored.split('.'), sent.split('.')]
  return new Problem('idempotency-key-reused', {
    detail:
      ofSecret === otherSecret
        ? 'This Idempotency-Key was used with another method, path, body or inbox password.'
        : 'This Idempotency-Key was used with another secret of this API key. Its answer can only be read with that secret.',
  })
}

/** The bytes of an answer; null for a stream. */
function bytesOf(payload: unknown): Buffer | null {
  if (payload === null || payload === undefined) return Buffer.alloc(0)
  if (typeof payload === 'string') return Buffer.from(payload)
  return Buffer.isBuffer(payload) ? payload : null
}

/** The headers to store; for a problem also the request id, which is in its body. */
function storedHeaders(reply: FastifyReply): Record<string, string> {
  const names = reply.statusCode < 300 ? STORED_HEADERS : [...STORED_HEADERS, 'x-request-id']
  return Object.fromEntries(
    names.flatMap((name) => {
      const value = reply.getHeader(name)
      return value === undefined ? [] : [[name, String(value)] as const]
    }),
  )
}

const MAX_CHARACTERS = 255
/** A String of RFC 8941, section 3.3.3: quoted, with quotes and backslashes escaped. */
const QUOTED = /^"((?:[\x20-\x21\x23-\x5b\x5d-\x7e]|\\["\\])*)"$/
/** Without quotes, as most clients send it. */
const BARE = /^[\x21\x23-\x7e][\x21-\x7e]*$/

/**
 * The value of `Idempotency-Key` (draft-ietf-httpapi-idempotency-key-header-07), without quotes. Null if the request
 * has none, or is not a POST. Throws invalid-request if it is not 1 to 255 characters of visible ASCII.
 */
export function idempotencyKeyOf({ method, headers }: FastifyRequest): string | null {
  const header = headers['idempotency-key']
  if (method !== 'POST' || header === undefined) return null
  const text = String(header)
  const [, quoted] = QUOTED.exec(text) ?? []
  const key = quoted?.replaceAll(/\\(["\\])/g, '$1') ?? (BARE.test(text) ? text : '')
  if (key.length >= 1 && key.length <= MAX_CHARACTERS) return key
  throw invalid({
    detail: `Idempotency-Key must be 1 to ${MAX_CHARACTERS} characters of visible ASCII, quoted or bare`,
    header: 'Idempotency-Key',
  })
}

export interface StoredAnswer {
  status: number
  headers: Readonly<Record<string, string>>
  /** Of the body. */
  size: number
  /** The body, as `pack` makes it. */
  packed: Buffer
}

const LINE_FEED = 0x0a

/**
 * Seals status, headers and size as JSON in one line, a line feed, and the packed body. The key is derived from the
 * caller's secret and the id of the stored record (RFC 5869), so an answer can't be opened with anything that Mayfly
 * stores.
 */
export function sealAnswer({ packed, ...about }: StoredAnswer, secret: string, id: string): Buffer {
  const head = Buffer.from(`${JSON.stringify(about)}\n`)
  return seal(keyOf(secret, id), id, Buffer.concat([head, packed]))
}

/** Throws SealBrokenError if it was sealed with another secret. */
export function openAnswer(sealed: Uint8Array, secret: string, id: string): StoredAnswer {
  const opened = unseal(keyOf(secret, id), id, sealed)
  const end = opened.indexOf(LINE_FEED)
  const head = JSON.parse(opened.toString('utf8', 0, end)) as Omit<StoredAnswer, 'packed'>
  return { ...head, packed: opened.subarray(end + 1) }
}

function keyOf(secret: string, id: string): SecretKey {
  return secretKey(Buffer.from(hkdfSync('sha256', secret, id, 'mayfly answer', 32)))
}
