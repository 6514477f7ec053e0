import { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Logger } from 'pino'
import { addressGroup, plainAddress } from '#libs/runtime/remote-address.js'
import { idPattern } from '#libs/domain/ids/typeid.js'
import type { ApiRequestServed } from '#libs/domain/usage/usage-events.js'
import type { UsageRecorder } from '#libs/ports/usage/usage-recorder.js'
import { principalOf } from '../access/authenticator.js'
import type { ApiMetrics } from '../operations/api-metrics.js'
import type { StreamOutcome } from '../events/event-stream.js'
import { routeTemplate } from './method-table.js'
import { Problem, type ProblemCode, invalid } from './problems.js'
import type { IncomingMessage, Server, ServerResponse } from 'node:http'

/** The status in the log and in metrics of a request whose client left before the answer was sent, as in nginx. */
const HUNG_UP = 499
const BAD_REQUEST = 400
const TOO_MANY_REQUESTS = 429
const MAX_CHARACTERS = 200
const ID = new RegExp(idPattern('[a-z]{3}'))

const NOTES = Symbol('notes')

/** What the line of a request says that neither request nor answer shows afterwards. */
interface Notes {
  problem?: ProblemCode
  bodyBytes?: number
  /** Why a stream of events ended. */
  stream?: StreamOutcome
}

/** Adds to what the line of a request will say. */
export function note(request: FastifyRequest, notes: Notes): void {
  Object.assign(request, { [NOTES]: { ...notesOf(request), ...notes } })
}

function notesOf(request: FastifyRequest): Notes {
  return (request as { [NOTES]?: Notes })[NOTES] ?? {}
}

/** Writes one line and makes one observation of each request. */
export class AccessLog {
  private readonly refusals: RefusalLines

  constructor(
    private readonly metrics: ApiMetrics,
    private readonly usage: Pick<UsageRecorder, 'record'>,
    private readonly now: () => Date,
    private readonly logger: Pick<Logger, 'info'>,
  ) {
    this.refusals = new RefusalLines(logger)
  }

  /**
   * Logs a request once its answer is sent or its client has left. The line has no secret and no content, and of the URL
   * only the route and the ids: what a query searches for may be personal. Requests refused with 429, and those without
   * a valid key that fail or whose client left, share lines.
   */
  watch(request: FastifyRequest, reply: FastifyReply): void {
    const { socket } = request.raw
    const writtenBefore = socket.bytesWritten
    reply.raw.once('close', () => {
      const { method } = request
      const { url } = request.routeOptions
      const route = url === undefined ? 'unknown' : routeTemplate(url)
      const status = reply.raw.writableFinished ? reply.statusCode : HUNG_UP
      const { elapsedTime } = reply
      const { problem, stream, bodyBytes = 0 } = notesOf(request)
      // Everything that was written to the connection meanwhile.
      const bytesOut = socket.bytesWritten - writtenBefore
      this.metrics.observe(method, route, status, elapsedTime)
      if (problem !== undefined) this.metrics.problems.inc({ code: problem })
      const principal = principalOf(request)
      if (principal !== null) {
        const { keyId, subject } = principal
        const served: ApiRequestServed = {
          ...{ type: 'ApiRequestServed', count: 1, keyId, method, route, status },
          isRefused: status === TOO_MANY_REQUESTS,
          durationMs: Math.round(elapsedTime * 1_000) / 1_000,
          requestBytes: bodyBytes,
          responseBytes: bytesOut,
          inboxId: subject?.id ?? null,
          labels: subject?.labels ?? {},
          servedAt: this.now(),
        }
        this.usage.record(served, principal)
      }
      const refused = reply.statusCode === TOO_MANY_REQUESTS ? TOO_MANY_REQUESTS : status
      if (!this.hasOwnLine(request, refused)) return
      request.log.info(
        {
          ...who(request),
          ...idsIn(request.params),
          ...{ method, route, status, problem, stream },
          ms: Math.round(elapsedTime * 100) / 100,
          bytesIn: bodyBytes,
          bytesOut,
          remoteAddress: socket.remoteAddress,
          userAgent: request.headers['user-agent']?.slice(0, MAX_CHARACTERS),
          clientRequestId: clientRequestIdOf(request),
        },
        'request',
      )
    })
  }

  /** Logs what never became a request, unless others of its remote address have failed in the same second. */
  logUnreadable(reqId: string, { status, code: problem }: Problem, socket: Duplex): void {
    const remoteAddress = socket instanceof Socket ? socket.remoteAddress : undefined
    if (this.refusals.count({ remoteAddress: addressGroup(plainAddress(remoteAddress)), status })) {
      this.logger.info({ reqId, status, problem, remoteAddress }, 'request')
    }
  }

  /** False for a further one of the refused requests that share a line. */
  private hasOwnLine(request: FastifyRequest, status: number): boolean {
    if (status === TOO_MANY_REQUESTS) return this.refusals.count({ ...who(request), status })
    if (status < BAD_REQUEST || principalOf(request) !== null) return true
    const remoteAddress = addressGroup(plainAddress(request.raw.socket.remoteAddress))
    return this.refusals.count({ remoteAddress, status })
  }
}

function who(request: FastifyRequest): Record<string, string> {
  const principal = principalOf(request)
  return principal === null ? {} : { accountId: principal.accountId, keyId: principal.keyId }
}

/** Parameters of the path that are ids, by their names. */
function idsIn(params: unknown): Record<string, unknown> {
  return Object.fromEntries(Object.entries(params ?? {}).filter(([, value]) => ID.test(String(value))))
}

/** A client's own id, to find the line from the client's log. It never replaces the request's id. */
function clientRequestIdOf({ headers }: FastifyRequest): string | undefined {
  const given = headers['x-request-id']
  return typeof given === 'string' && /^[\x21-\x7e]{1,100}$/.test(given) ? given : undefined
}

/** Whose requests are refused: a key's, or without one a remote address's. */
interface Refused {
  accountId?: string
  keyId?: string
  remoteAddress?: string
  status: number
}

const SECOND_MS = 1_000
/** Keys and addresses that are counted separately within a second. */
const MAX_OWNERS = 1_000

/**
 * Bounds the log lines of refused requests, so that a flood does not fill the disk: the first one in a second of each
 * key or address and status has a line of its own, and one line at the second's end says how many more there were.
 */
class RefusalLines {
  private readonly owners = new Map<string, { refused: Refused; more: number }>()
  /** Of keys and addresses beyond those. */
  private others = 0

  constructor(private readonly logger: Pick<Logger, 'info'>) {}

  /** Counts a refusal. Returns whether it has a line of its own. */
  count(refused: Refused): boolean {
    const id = `${refused.keyId ?? refused.remoteAddress} ${refused.status}`
    const owner = this.owners.get(id)
    if (owner !== undefined) owner.more += 1
    else if (this.owners.size >= MAX_OWNERS) this.others += 1
    else {
      if (this.owners.size === 0) setTimeout(() => this.endSecond(), SECOND_MS).unref()
      this.owners.set(id, { refused, more: 0 })
      return true
    }
    return false
  }

  private endSecond(): void {
    for (const { refused, more } of this.owners.values()) {
      if (more > 0) this.logger.info({ ...refused, refused: more }, 'requests refused')
    }
    if (this.others > 0) this.logger.info({ refused: this.others }, 'requests refused')
    this.owners.clear()
    this.others = 0
  }
}

/** Answers a connection whose bytes never became a request. */
type AnswerSocket = (socket: Duplex, problem: Problem) => void

/** Bytes that are not HTTP, or too many of them, or too late (RFC 9112). A 408 would be repeated by some clients. */
export function clientErrorHandler(answerSocket: AnswerSocket) {
  return (error: Error & { code?: string }, socket: Duplex): void => {
    if (error.code === 'ECONNRESET') socket.destroy()
    else answerSocket(socket, problemOf(error))
  }
}

/** What Node would answer by itself, without a body that says why. */
export function answerBesideRequests(server: Server, answerSocket: AnswerSocket): void {
  server.on('connect', (_: IncomingMessage, socket: Duplex) => {
    const detail = 'CONNECT is for proxies, which this is not.'
    answerSocket(socket, new Problem('invalid-request', { detail }))
  })
  // An expectation other than 100-continue need not be met (RFC 9110, section 10.1.1).
  server.on('checkExpectation', (request: IncomingMessage, response: ServerResponse) => {
    server.emit('request', request, response)
  })
}

const BROKEN: Readonly<Record<string, string>> = {
  HPE_HEADER_OVERFLOW: 'The request line and headers are over 16 KiB.',
  ERR_HTTP_REQUEST_TIMEOUT: 'The request did not come in time.',
}

function problemOf({ code, message }: Error & { code?: string }): Problem {
  const why = message.replace(/^Parse Error: /, '')
  const detail = BROKEN[code ?? ''] ?? `The request is not valid HTTP: ${why}.`
  return new Problem('invalid-request', { detail })
}

/** RFC 9112, section 3.2: a request of HTTP/1.1 names its host, and none names it twice. */
export function requireHost({ raw: { httpVersion, headers, rawHeaders } }: FastifyRequest): void {
  if (headers.host === undefined) {
    if (httpVersion === '1.1') throw invalid({ detail: 'The header Host is missing.', header: 'Host' })
    return
  }
  // Names and values alternate.
  const hosts = rawHeaders.filter((text, index) => index % 2 === 0 && text.toLowerCase() === 'host')
  if (hosts.length > 1) throw invalid({ detail: 'The header Host comes more than once.', header: 'Host' })
}

export function requireFraming({ raw }: FastifyRequest): void {
  if (isFramed(raw)) return
  const detail = 'Transfer-Encoding may be chunked and nothing else, and comes with HTTP/1.1 alone.'
  throw invalid({ detail, header: 'Transfer-Encoding' })
}

/** Whether every proxy on the way finds the same end of the body as Node (RFC 9112, section 6.1). */
export function isFramed({ httpVersion, headers }: IncomingMessage): boolean {
  const coding = headers['transfer-encoding']
  return coding === undefined || (httpVersion === '1.1' && coding.toLowerCase() === 'chunked')
}
