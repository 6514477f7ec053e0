import { hash, hkdfSync, randomBytes } from 'node:crypto'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { IdempotencyStore, Repeatable, Run } from '#libs/ports/idempotency/idempotency-store.js'
import { seal, secretKey, type SecretKey, unseal } from '#libs/ports/key-vault/content.js'
import { bearerSecretOf, type Principal, principalOf } from '../access/authenticator.js'
import { bodyBytesOf } from '../http/request-reading.js'
import { invalid, Problem } from '../http/problems.js'
import { createParamDecorator, type ExecutionContext } from '@nestjs/common'
import { mintId } from '#libs/domain/ids/mint.js'
import { type Id, idFromBytes } from '#libs/domain/ids/typeid.js'

/*
 * POSTs with an Idempotency-Key. The seed of a request's ids is stored before its handler runs. If the process is killed
 * at any point, the request runs again with the same ids, and repeats nothing that is already on the log. See
 * docs/decisions/0013-repeated-requests.md.
 */

interface Running {
  run: Run
  secret: string
  renewing: NodeJS.Timeout
}

const RUNNING = Symbol('running')
type Watched = FastifyRequest & { [RUNNING]?: Running | undefined }

/** The longest that a run without an answer keeps others waiting. */
const LONGEST_RUN_MS = 60_000
const MAX_ANSWER_BYTES = 1 << 20
/** The headers that belong to a stored answer. All others are set for each request. */
const KEPT_HEADERS = ['content-type', 'location', 'link', 'mayfly-cursor', 'cache-control'] as const

export class Idempotency {
  /** `onUnkept` is called if an answer could not be stored: a repeat then runs again, with the same ids. */
  constructor(
    private readonly store: IdempotencyStore,
    private readonly onUnkept: (error: unknown) => void,
  ) {}

  /** Applies to every route that is registered from now on. */
  watch(server: FastifyInstance): void {
    server.addHook('preHandler', (request, reply) => this.begin(request, reply))
    server.addHook('onSend', (request, reply, payload) => this.end(request, reply, payload))
  }

  /** Runs the first request with a key. Answers a repeat with the stored answer, or refuses it. */
  private async begin(request: Watched, reply: FastifyReply): Promise<FastifyReply | undefined> {
    if (request.is404) return undefined
    const key = idempotencyKeyOf(request)
    const principal = principalOf(request)
    const secret = bearerSecretOf(request)
    if (key === null || principal === null || secret === null) return undefined
    // ScopeGuard refuses it later: a caller without access gets no stored answer.
    if (!principal.plan.hasApiAccess) return undefined
    const wanted = repeatable(request, principal, key, secret)
    const reserved = await this.store.reserve(wanted)
    switch (reserved.state) {
      case 'run':
        this.run(request, reserved.run, secret)
        return undefined
      case 'in-use':
        throw new Problem('idempotency-key-in-use', {
          detail: 'A request with this Idempotency-Key is being answered just now.',
          headers: { 'retry-after': '1' },
        })
      case 'reused':
        throw reused(reserved.fingerprint, wanted.fingerprint)
      case 'stored': {
        const { status, headers, body } = openAnswer(reserved.answer, secret, wanted.id)
        return reply
          .code(status)
          .headers({ ...headers, 'idempotent-replayed': 'true' })
          .send(body)
      }
    }
  }

  private run(request: Watched, run: Run, secret: string): void {
    const { store, onUnkept } = this
    const endsAtMs = performance.now() + LONGEST_RUN_MS
    const renewing = setInterval(() => {
      if (performance.now() > endsAtMs) clearInterval(renewing)
      else store.renew(run).catch(onUnkept)
    }, store.leaseMs / 3).unref()
    request[RUNNING] = { run, secret, renewing }
    setMinting(request, seededMinting(run, secret))
  }

  /** Resolves once the answer may be sent, even if the store fails. */
  private async end(request: Watched, reply: FastifyReply, payload: unknown): Promise<unknown> {
    const running = request[RUNNING]
    if (running === undefined) return payload
    request[RUNNING] = undefined
    clearInterval(running.renewing)
    await this.keep(running, reply, payload).catch(this.onUnkept)
    return payload
  }

  private async keep({ run, secret }: Running, reply: FastifyReply, payload: unknown): Promise<void> {
    const { store } = this
    const { statusCode: status } = reply
    if (status >= 500) return store.release(run, 'resumable')
    // 404 and 410 are results of the request; any other refusal means that nothing was done.
    if (status >= 300 && status !== 404 && status !== 410) return store.release(run, 'undone')
    const body = bytesOf(payload)
    if (body === null || body.length > MAX_ANSWER_BYTES) return store.release(run, 'resumable')
    const answer = { status, headers: keptHeaders(reply), body }
    return store.finish(run, sealAnswer(answer, secret, run.id))
  }
}

/**
 * Whoever reads the store learns neither the client's key, nor the secret, nor the body. The password of an inbox is
 * part of the request, since a stored answer is given before any password is checked.
 */
function repeatable(
  request: FastifyRequest,
  { keyId, inboxPassword }: Principal,
  key: string,
  secret: string,
): Repeatable {
  const id = hash('sha256', `${keyId} ${key}`)
  const digest = hash('sha256', bodyBytesOf(request))
  const password = inboxPassword === null ? '' : ` ${inboxPassword}`
  const marks = [secret, `${secret} ${request.method} ${request.url} ${digest}${password}`]
  const [ofSecret = '', ofRequest = ''] = marks.map((mark) =>
    Buffer.from(hkdfSync('sha256', mark, id, 'mayfly fingerprint', 16)).toString('hex'),
  )
  return { id, fingerprint: `${ofSecret}.${ofRequest}` }
}

function reused(stored: string, given: string): Problem {
  const [[ofSecret], [otherSecret]] = [stored.split('.'), given.split('.')]
  return new Problem('idempotency-key-reused', {
    detail:
      ofSecret === otherSecret
        ? 'This Idempotency-Key came with another method, path, body or inbox password before.'
        : 'This Idempotency-Key came with another secret of this API key before, which alone opens the answer.',
  })
}

/** Null for a stream. */
function bytesOf(payload: unknown): Uint8Array | null {
  if (payload === null || payload === undefined) return new Uint8Array()
  if (typeof payload === 'string') return Buffer.from(payload)
  return payload instanceof Uint8Array ? payload : null
}

/** The headers to store; for a problem also the request's id, which its body names. */
function keptHeaders(reply: FastifyReply): Record<string, string> {
  const names = reply.statusCode < 300 ? KEPT_HEADERS : [...KEPT_HEADERS, 'x-request-id']
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
/** The same without quotes, as most clients send it. */
const BARE = /^[\x21\x23-\x7e][\x21-\x7e]*$/

/**
 * The text of `Idempotency-Key` (draft-ietf-httpapi-idempotency-key-header-07), the same quoted and bare; null if a
 * POST has none. Throws a 400 if it is not 1 to 255 characters of visible ASCII.
 */
export function idempotencyKeyOf({ method, headers }: FastifyRequest): string | null {
  const given = headers['idempotency-key']
  if (method !== 'POST' || given === undefined) return null
  const text = String(given)
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
  body: Uint8Array
}

/*
 * Sealed are status and headers as JSON in one line, a line feed, and the body. The key is derived from the caller's
 * secret (RFC 5869) and the record's id, so that nothing that Mayfly stores opens an answer.
 */

const LINE_FEED = 0x0a

export function sealAnswer({ status, headers, body }: StoredAnswer, secret: string, id: string): Buffer {
  const head = Buffer.from(`${JSON.stringify({ status, headers })}\n`)
  return seal(keyOf(secret, id), id, Buffer.concat([head, body]))
}

/** Throws SealBrokenError if it was sealed with another secret. */
export function openAnswer(sealed: Uint8Array, secret: string, id: string): StoredAnswer {
  const opened = unseal(keyOf(secret, id), id, sealed)
  const end = opened.indexOf(LINE_FEED)
  const head = JSON.parse(opened.toString('utf8', 0, end)) as Omit<StoredAnswer, 'body'>
  return { ...head, body: opened.subarray(end + 1) }
}

function keyOf(secret: string, id: string): SecretKey {
  return secretKey(Buffer.from(hkdfSync('sha256', secret, id, 'mayfly answer', 32)))
}

/**
 * Makes ids, and random bytes that are fit for secrets. Handlers take them only from here, in an order that depends only
 * on the request, so that a request that runs again can be given the same ones.
 */
export interface Minting {
  id<Prefix extends string>(prefix: Prefix): Id<Prefix>
  bytes(count: number): Uint8Array
}

const MINTING = Symbol('minting')

const AT_RANDOM: Minting = { id: mintId, bytes: randomBytes }

/** Replaces the random ids and bytes of a request. */
export function setMinting(request: FastifyRequest, minting: Minting): void {
  Object.assign(request, { [MINTING]: minting })
}

/** The Minting of the request that a handler answers. */
export const Mint = createParamDecorator((_: unknown, context: ExecutionContext): Minting => {
  const request = context.switchToHttp().getRequest<FastifyRequest & { [MINTING]?: Minting }>()
  return request[MINTING] ?? AT_RANDOM
})

/** The bits of a UUIDv7 that keep the ids of one request in the order in which they were made. */
const MAX_ORDERED = 0xfff

/**
 * The same ids and bytes for every run of a request. Ids are derived from the seed, as UUIDv7 of the time at which the
 * request first came (RFC 9562, section 5.7). Bytes may be secrets, so they are derived from the caller's secret too:
 * the seed alone does not reveal them.
 */
export function seededMinting({ seed, firstAtMs }: Pick<Run, 'seed' | 'firstAtMs'>, secret: string): Minting {
  let ids = 0
  let draws = 0
  return {
    id(prefix) {
      ids += 1
      const uuid = Buffer.from(hkdfSync('sha256', seed, '', `mayfly id ${ids}`, 16))
      uuid.writeUIntBE(firstAtMs, 0, 6)
      uuid.writeUInt16BE(0x7000 | Math.min(ids, MAX_ORDERED), 6)
      uuid.writeUInt8(0x80 | (uuid.readUInt8(8) & 0x3f), 8)
      return idFromBytes(prefix, uuid)
    },
    bytes(count) {
      draws += 1
      return Buffer.from(hkdfSync('sha256', secret, seed, `mayfly bytes ${draws}`, count))
    },
  }
}
