import { randomUUID } from 'node:crypto'
import { Readable } from 'node:stream'
import { FastifyAdapter } from '@nestjs/platform-fastify'
import { type FastifyInstance, type FastifyReply, type FastifyRequest, LogController } from 'fastify'
import type { Logger } from 'pino'
import { budgetScale } from '#libs/runtime/config/memory-settings.js'
import type { Settings } from '#libs/runtime/config/settings.js'
import type { UsageRecorder } from '#libs/ports/usage/usage-recorder.js'
import type { ApiMetrics } from '../operations/api-metrics.js'
import { principalOf } from '../access/authenticator.js'
import { watchRequest, RefusalLines } from './access-log.js'
import { setSafeHeaders, Cors } from './headers.js'
import type { Idempotency } from '../idempotency/idempotency.js'
import { discardBody, MAX_BODY_BYTES, maxBodyBytes, SMALL_BODY_BYTES, takeJson } from './bodies.js'
import {
  answerBesideRequests,
  answerClientErrors,
  answerFrameworkErrors,
  requireFraming,
  requireHost,
} from './broken-requests.js'
import { LARGE_BYTES, type RequestBudgets } from './budgets.js'
import { ConnectionTurns, KeylessPace, shareConnections } from './connection-limits.js'
import { type MethodTable, MAX_PARAM_CHARACTERS } from './method-table.js'
import { unavailable } from './problems.js'
import { ReadTurns } from './read-turns.js'
import type { StalledReaders } from './stalled-readers.js'

/** Or sooner, where a request has less time in all. */
const HEADERS_TIMEOUT_MS = 15_000
const KEEP_ALIVE_MS = 72_000
/** Without a byte in either direction, longer than any handler lets its client wait for one. */
const SILENT_MS = 120_000

export interface ServerOptions {
  settings: Pick<Settings, 'corsOrigins' | 'httpMaxConnections' | 'httpRequestTimeoutMs' | 'memoryMib'>
  logger: Logger
  metrics: ApiMetrics
  usage: Pick<UsageRecorder, 'record'>
  now: () => Date
  methods: MethodTable
  isShuttingDown: () => boolean
  /** What links in problems begin with. */
  publicUrl: () => string
  /** Throws if the request needs a key and has no valid one. */
  authenticate: (request: FastifyRequest) => Promise<void>
  /** Counts a request that was authenticated; throws if there were too many. */
  limit: (request: FastifyRequest, reply: FastifyReply) => Promise<void>
  idempotency: Idempotency
  budgets: RequestBudgets
  stalled: StalledReaders
}

/** Fastify under Nest: request ids, bodies, one log line and one observation per request. */
export function makeServer({
  settings,
  logger,
  metrics,
  usage,
  now,
  methods,
  isShuttingDown,
  publicUrl,
  authenticate,
  limit,
  idempotency,
  budgets,
  stalled,
}: ServerOptions): FastifyAdapter {
  const makeRequestId = () => `req_${randomUUID().replaceAll('-', '')}`
  const cors = new Cors(settings.corsOrigins)
  const onDropped = () => metrics.connectionDropped()
  const reads = new ReadTurns({ memoryScale: budgetScale(settings), onDropped })
  const turns = new ConnectionTurns(reads)
  const pace = new KeylessPace(reads)
  const refusals = new RefusalLines(logger)
  const welcome = async (request: FastifyRequest, reply: FastifyReply): Promise<boolean> => {
    await turns.take(request, reply)
    watchRequest(request, reply, { metrics, usage, now, refusals })
    void reply.header('x-request-id', request.id)
    return cors.mark(request, reply)
  }
  const check = async (request: FastifyRequest, reply: FastifyReply) => {
    requireHost(request)
    requireFraming(request)
    await authenticate(request)
    await limit(request, reply)
  }
  const admit = async (request: FastifyRequest, reply: FastifyReply) => {
    if (isShuttingDown()) throw unavailable('shutting-down', 'This instance accepts no more requests.')
    try {
      await check(request, reply)
    } catch (error) {
      await pace.take(request)
      throw error
    }
    if (principalOf(request) === null) await pace.take(request)
  }
  const broken = { publicUrl, makeRequestId, logger, refusals }
  const { httpRequestTimeoutMs: requestTimeout } = settings
  const headersTimeout = Math.min(HEADERS_TIMEOUT_MS, requestTimeout)
  const adapter = new FastifyAdapter({
    loggerInstance: logger,
    logController: new LogController({ disableRequestLogging: true }),
    genReqId: makeRequestId,
    clientErrorHandler: answerClientErrors(broken),
    frameworkErrors: answerFrameworkErrors({ publicUrl, welcome, admit }),
    http: {
      requireHostHeader: false,
      headersTimeout,
      // How late a slow request may be noticed.
      connectionsCheckingInterval: headersTimeout / 5,
    },
    requestTimeout,
    connectionTimeout: SILENT_MS,
    keepAliveTimeout: KEEP_ALIVE_MS,
    return503OnClosing: false,
    forceCloseConnections: 'idle',
    routerOptions: { maxParamLength: MAX_PARAM_CHARACTERS },
  })
  const server: FastifyInstance = adapter.getInstance()
  // Who has ended sending still gets the answers: by itself Node closes on them (RFC 9112, section 9.6).
  Object.assign(server.server, { httpAllowHalfOpen: true })
  shareConnections(server.server, {
    max: settings.httpMaxConnections,
    onDropped,
  })
  // Requests sent ahead share a connection, and each of them that waits listens to it.
  server.server.on('connection', (socket) => {
    socket.setMaxListeners(0)
    reads.watch(socket)
  })
  answerBesideRequests(server.server, broken)
  // Browsers request these on their own or by mistake; they are not API operations.
  server.get('/favicon.ico', (_, reply) => reply.type('image/x-icon').send(FAVICON))
  server.get('/docs/', (_, reply) => reply.redirect('../docs', 308))
  methods.watch(server)
  takeJson(server)
  server.addHook('onRequest', async (request, reply) => {
    const { raw } = request
    const isBodyRead = raw.method !== 'GET' && raw.method !== 'HEAD'
    const bodyBytes = isBodyRead ? Math.min(maxBodyBytes(raw), MAX_BODY_BYTES) : 0
    const readOn = bodyBytes > SMALL_BODY_BYTES ? reads.hold(raw.socket) : null
    if (!isBodyRead) discardBody(raw)
    try {
      const isAllowedOrigin = await welcome(request, reply)
      if (isAllowedOrigin && cors.isPreflight(request)) {
        await pace.take(request)
        return await cors.answerPreflight(reply)
      }
      await admit(request, reply)
      if (readOn !== null) await budgets.holdBody(request, reply, bodyBytes)
      return undefined
    } catch (error) {
      discardBody(raw)
      throw error
    } finally {
      readOn?.()
    }
  })
  idempotency.watch(server)
  // A connection kept open would hold the end up until its client lets go of it.
  server.addHook('onSend', (request, reply, payload, done) => {
    setSafeHeaders(reply)
    if (isShuttingDown()) void reply.header('connection', 'close')
    done(null, sentInPieces(request, reply, payload, stalled))
  })
  return adapter
}

/** A 32 × 32 envelope: a PNG in an ICO container. */
const FAVICON = Buffer.from(
  'AAABAAEAICAAAAEAIADEAAAAFgAAAIlQTkcNChoKAAAADUlIRFIAAAAgAAAAIAIDAAAADhSSZwAAAAlQTFRFAAAAL2/e////qM5W' +
    'BwAAAAF0Uk5TAEDm2GYAAABpSURBVHjaldCxDYBACAVQLBzBfRzBwjOR3ub2kQ0o7k8pHHox0Zj4G15+BRB1yTISUaqhKLzqAxMN' +
    'gfkF6cwNCyy7Nxko3qwM6GZgAUQdmgtX2MgVEEFA+YTlNx77fCzfDmwntydcbzkAIkxisnA1SNYAAAAASUVORK5CYII=',
  'base64',
)

const PIECE_BYTES = 64 * 1024
/** Of a large answer, in the time after which a client counts as stalled. */
const MIN_TAKEN_BYTES = 1024 * 1024

/**
 * A large body as a stream of pieces, so that it can be seen whether the client reads it: one that does not, or
 * hardly does, is disconnected. Anything else stays as it is.
 */
function sentInPieces(
  { raw: { socket } }: FastifyRequest,
  reply: FastifyReply,
  payload: unknown,
  stalled: StalledReaders,
): unknown {
  if (!(typeof payload === 'string' || Buffer.isBuffer(payload)) || payload.length <= LARGE_BYTES)
    return payload
  const body = typeof payload === 'string' ? Buffer.from(payload) : payload
  void reply.header('content-length', body.length)
  const unwatch = stalled.watch(socket, () => socket.destroy(), MIN_TAKEN_BYTES)
  reply.raw.once('close', unwatch)
  if (reply.raw.closed) unwatch()
  return Readable.from(piecesOf(body), { objectMode: false })
}

function* piecesOf(body: Buffer): Generator<Buffer> {
  for (let at = 0; at < body.length; at += PIECE_BYTES) yield body.subarray(at, at + PIECE_BYTES)
}
