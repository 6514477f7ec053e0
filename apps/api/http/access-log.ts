import { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Logger } from 'pino'
import { idPattern } from '#libs/domain/ids/typeid.js'
import type { ApiRequestServed } from '#libs/domain/usage/usage-events.js'
import type { UsageRecorder } from '#libs/ports/usage/usage-recorder.js'
import { addressGroup, plainAddress } from '#libs/runtime/remote-address.js'
import { LOGS_TO_TERMINAL } from '#libs/runtime/process/terminal.js'
import { principalOf } from '../access/principal.js'
import type { StreamOutcome } from '../events/event-feed.js'
import type { ApiMetrics } from '../operations/api-metrics.js'
import { routeTemplate } from './method-table.js'
import type { Problem, ProblemCode } from './problems.js'

/*
 * The access log: one line, one observation in metrics and one usage event per request. Refused requests share lines.
 */

/** The status in the log and in metrics if the client left before the answer was sent, as in nginx. */
const CLIENT_LEFT = 499
const BAD_REQUEST = 400
const TOO_MANY_REQUESTS = 429
const MAX_CHARACTERS = 200
/** The level of the lines of requests that succeeded. On a terminal, each page of the console would print many. */
const SUCCEEDED = LOGS_TO_TERMINAL ? 'debug' : 'info'
const ID = new RegExp(idPattern('[a-z]{3}'))

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
   * Logs a request once its answer is sent or its client has left. The line has no secret and no content. It has the
   * route and the ids of the URL, but not the query, which may contain personal data. Requests refused with 429 share
   * lines, and so do requests without a valid key that failed or whose client left.
   */
  watch(request: FastifyRequest, reply: FastifyReply): void {
    const { socket } = request.raw
    const writtenBefore = socket.bytesWritten
    reply.raw.once('close', () => {
      const { method } = request
      const { url } = request.routeOptions
      const route = url === undefined ? 'unknown' : routeTemplate(url)
      const status = reply.raw.writableFinished ? reply.statusCode : CLIENT_LEFT
      const { elapsedTime } = reply
      const { problem, stream, bodyBytes = 0 } = notesOf(request)
      // Includes what was written for other requests on the connection in the meantime.
      const bytesOut = socket.bytesWritten - writtenBefore
      this.metrics.requestSeconds.observe({ method, route, status: String(status) }, elapsedTime / 1_000)
      if (problem !== undefined) this.metrics.problems.inc({ code: problem })
      const principal = principalOf(request)
      // What people do in the console is not usage of the key that they signed in with.
      if (principal !== null && principal.sessionId === null) {
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
      const hasFailed = status >= BAD_REQUEST && !(status === CLIENT_LEFT && stream !== undefined)
      request.log[hasFailed ? 'info' : SUCCEEDED](
        {
          ...callerIds(request),
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

  /** Logs bytes that are not a valid request, at most once a second for each remote address. */
  logUnreadable(reqId: string, { status, code: problem }: Problem, socket: Duplex): void {
    const remoteAddress = socket instanceof Socket ? socket.remoteAddress : undefined
    if (this.refusals.count({ remoteAddress: addressGroup(plainAddress(remoteAddress)), status })) {
      this.logger.info({ reqId, status, problem, remoteAddress }, 'request')
    }
  }

  /** False if the request is counted in a line that it shares with other refused requests. */
  private hasOwnLine(request: FastifyRequest, status: number): boolean {
    if (status === TOO_MANY_REQUESTS) return this.refusals.count({ ...callerIds(request), status })
    if (status < BAD_REQUEST || principalOf(request) !== null) return true
    const remoteAddress = addressGroup(plainAddress(request.raw.socket.remoteAddress))
    return this.refusals.count({ remoteAddress, status })
  }
}

const NOTES = Symbol('notes')

/** Parts of a request's line that can't be read from the request or its answer afterwards. */
interface Notes {
  problem?: ProblemCode
  bodyBytes?: number
  stream?: StreamOutcome
}

export function note(request: FastifyRequest, notes: Notes): void {
  Object.assign(request, { [NOTES]: { ...notesOf(request), ...notes } })
}

function notesOf(request: FastifyRequest): Notes {
  return (request as { [NOTES]?: Notes })[NOTES] ?? {}
}

function callerIds(request: FastifyRequest): Record<string, string> {
  const principal = principalOf(request)
  if (principal === null) return {}
  const { accountId, keyId, actor } = principal
  return { accountId, keyId, ...(actor === null ? {} : { actor }) }
}

/** Path parameters whose names are those of the caller's ids. */
const PATH_NAMES: Readonly<Record<string, string>> = { accountId: 'pathAccountId', keyId: 'pathKeyId' }

/** The path parameters that are ids, or two ids with a full stop between them. */
function idsIn(params: unknown): Record<string, unknown> {
  const ids = Object.entries(params ?? {}).filter(([, value]) => isIds(String(value)))
  return Object.fromEntries(ids.map(([name, value]) => [PATH_NAMES[name] ?? name, value]))
}

function isIds(value: string): boolean {
  const parts = value.split('.')
  return parts.length <= 2 && parts.every((part) => ID.test(part))
}

/** The client's own id of the request, to find the line from the client's log. It never replaces the request's id. */
function clientRequestIdOf({ headers }: FastifyRequest): string | undefined {
  const given = headers['x-request-id']
  return typeof given === 'string' && /^[\x21-\x7e]{1,100}$/.test(given) ? given : undefined
}

/**
 * The owner of refused requests: a key, or a token or session made with it; or a remote address for requests without one.
 */
interface Refused {
  accountId?: string
  keyId?: string
  actor?: string
  remoteAddress?: string
  status: number
}

const SECOND_MS = 1_000
/** Owners that are counted separately within a second. */
const MAX_OWNERS = 1_000

/**
 * Bounds the log lines of refused requests, so that a flood does not fill the disk. Within a second, the first refusal
 * of each owner and status has its own line; one line at the end of the second has the number of further refusals.
 */
class RefusalLines {
  private readonly owners = new Map<string, { refused: Refused; more: number }>()
  private others = 0

  constructor(private readonly logger: Pick<Logger, 'info'>) {}

  count(refused: Refused): boolean {
    const id = `${refused.actor ?? refused.keyId ?? refused.remoteAddress} ${refused.status}`
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
