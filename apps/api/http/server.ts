import { randomUUID } from 'node:crypto'
import { Readable, type Duplex } from 'node:stream'
import { FastifyAdapter } from '@nestjs/platform-fastify'
import { type FastifyInstance, type FastifyReply, type FastifyRequest, LogController } from 'fastify'
import { budgetScale } from '#libs/runtime/config/memory-settings.js'
import { principalOf } from '../access/principal.js'
import type { ApiOptions, SharedServices } from '../shared-services.js'
import { AccessLog } from './access-log.js'
import { LARGE_BYTES } from './budgets.js'
import { ConnectionTurns, KeylessPace, shareConnections } from './connection-limits.js'
import { Cors, setSafeHeaders } from './headers.js'
import {
  answerBesideRequests,
  clientErrorHandler,
  requireFraming,
  requireHost,
} from './malformed-requests.js'
import { MAX_PARAM_CHARACTERS } from './method-table.js'
import { endWithProblem, sendProblem } from './problem-filter.js'
import { Problem, shuttingDown } from './problems.js'
import { ReadTurns } from './read-turns.js'
import { rememberOrigins } from './request-origin.js'
import { takeTurn } from './request-turns.js'
import { discardBody, RequestBodies, SMALL_BODY_BYTES } from './request-bodies.js'
import type { StalledReaders } from './stalled-readers.js'

/** The maximum time for the headers. Shorter if MAYFLY_HTTP_REQUEST_TIMEOUT_MS is. */
const HEADERS_TIMEOUT_MS = 15_000
const KEEP_ALIVE_MS = 72_000
/** The maximum time without a byte in either direction. Streams send one more often. */
const SILENT_MS = 120_000

type ServerOptions = Pick<ApiOptions, 'settings' | 'logger' | 'now'> & {
  shutdown: AbortSignal
  publicUrl: () => string
}

/** Makes Nest's Fastify server, with the checks that every request passes before its handler, in their order. */
export function makeServer(
  { metrics, usage, methods, authenticator, requestLimits, idempotency, budgets, stalled }: SharedServices,
  { settings, logger, now, shutdown, publicUrl }: ServerOptions,
): FastifyAdapter {
  const makeRequestId = () => `req_${randomUUID().replaceAll('-', '')}`
  const cors = new Cors(settings.corsOrigins)
  const onDropped = () => metrics.droppedConnections.inc()
  const reads = new ReadTurns(budgetScale(settings), onDropped)
  const turns = new ConnectionTurns(reads)
  const pace = new KeylessPace(reads)
  const bodies = new RequestBodies(settings.maxMessageBytes)
  const accessLog = new AccessLog(metrics, usage, now, logger)
  /** Waits for the request's turn and begins its log line and its answer. Returns whether its origin is allowed. */
  const start = async (request: FastifyRequest, reply: FastifyReply): Promise<boolean> => {
    // Each limit that ends with the answer, and Fastify itself, adds a listener. Node warns if there are more than 10.
    reply.raw.setMaxListeners(20)
    await turns.take(request, reply)
    accessLog.watch(request, reply)
    void reply.header('x-request-id', request.id)
    return cors.allowOrigin(request, reply)
  }
  /** Authenticates and counts a request. Throws a Problem if it is refused. */
  const admit = async (request: FastifyRequest, reply: FastifyReply) => {
    if (shutdown.aborted) throw shuttingDown()
    try {
      requireHost(request)
      requireFraming(request)
      await authenticator.authenticate(request)
      await requestLimits.count(request, reply)
    } catch (error) {
      await pace.take(request)
      throw error
    }
    if (principalOf(request) === null) await pace.take(request)
  }
  const answerSocket = (socket: Duplex, problem: Problem) => {
    const requestId = makeRequestId()
    accessLog.logUnreadable(requestId, problem, socket)
    endWithProblem(socket, problem, requestId, publicUrl())
  }
  /** A path that can't be decoded reaches no hook and no handler. The request is still authenticated and counted. */
  const answerUnreadablePath = async (request: FastifyRequest, reply: FastifyReply): Promise<void> => {
    const unreadable = new Problem('invalid-request', { detail: 'The path is not validly percent-encoded.' })
    await start(request, reply)
    setSafeHeaders(reply)
    const problem = await admit(request, reply).then(
      () => unreadable,
      (error: unknown) => (error instanceof Problem ? error : unreadable),
    )
    await sendProblem(problem, reply, publicUrl())
  }
  const { httpRequestTimeoutMs: requestTimeout } = settings
  const headersTimeout = Math.min(HEADERS_TIMEOUT_MS, requestTimeout)
  const adapter = new FastifyAdapter({
    loggerInstance: logger,
    logController: new LogController({ disableRequestLogging: true }),
    genReqId: makeRequestId,
    clientErrorHandler: clientErrorHandler(answerSocket),
    frameworkErrors: (_: Error, request: FastifyRequest, reply: FastifyReply) => {
      void answerUnreadablePath(request, reply)
    },
    http: {
      requireHostHeader: false,
      headersTimeout,
      // The maximum delay until a slow request is noticed.
      connectionsCheckingInterval: headersTimeout / 5,
    },
    requestTimeout,
    connectionTimeout: SILENT_MS,
    keepAliveTimeout: KEEP_ALIVE_MS,
    // Only for `request.ip`: nothing here reads the forwarded host or protocol. Fastify ignores a number of proxies.
    trustProxy: settings.trustedProxies > 0 && ((_, hop) => hop < settings.trustedProxies),
    return503OnClosing: false,
    forceCloseConnections: 'idle',
    routerOptions: { maxParamLength: MAX_PARAM_CHARACTERS },
  })
  const server: FastifyInstance = adapter.getInstance()
  // A client that has closed its sending side still gets the answers. By default Node closes (RFC 9112, section 9.6).
  Object.assign(server.server, { httpAllowHalfOpen: true })
  shareConnections(server.server, settings.httpMaxConnections, onDropped)
  // Each pipelined request that waits adds a listener to the socket.
  server.server.on('connection', (socket) => {
    socket.setMaxListeners(0)
    reads.watch(socket)
  })
  answerBesideRequests(server.server, answerSocket)
  // Browsers request these on their own or by mistake; they are not API operations.
  server.get('/favicon.ico', (_, reply) => reply.type('image/x-icon').send(FAVICON))
  server.get('/docs/', (_, reply) => reply.redirect('../docs', 308))
  methods.watch(server)
  bodies.parseOn(server)
  server.addHook('onRequest', async (request, reply) => {
    const { raw } = request
    const isBodyRead = raw.method !== 'GET' && raw.method !== 'HEAD'
    const bodyBytes = isBodyRead ? bodies.memoryOf(request) : 0
    const resume = bodyBytes > SMALL_BODY_BYTES ? reads.hold(raw.socket) : null
    if (isBodyRead) reads.expectBody(raw)
    else discardBody(raw)
    try {
      const isAllowedOrigin = await start(request, reply)
      if (isAllowedOrigin && cors.isPreflight(request)) {
        await pace.take(request)
        return await cors.answerPreflight(reply)
      }
      await admit(request, reply)
      if (resume !== null) await budgets.holdBody(reply, bodyBytes)
      await takeTurn(request, reply)
      return undefined
    } catch (error) {
      discardBody(raw)
      throw error
    } finally {
      resume?.()
    }
  })
  idempotency.watch(server)
  rememberOrigins(server)
  server.addHook('onSend', (request, reply, payload, done) => {
    setSafeHeaders(reply)
    if (principalOf(request) === null) pace.charge(request, isWhole(payload) ? payload.length : 0)
    // A connection that stays open would delay the shutdown.
    if (shutdown.aborted) void reply.header('connection', 'close')
    done(null, sentInPieces(reply, payload, stalled))
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

/**
 * Returns a large body as a stream of pieces, and disconnects a client that reads nothing or very little of it. Returns
 * any other body unchanged.
 */
function sentInPieces(reply: FastifyReply, payload: unknown, stalled: StalledReaders): unknown {
  if (!isWhole(payload) || payload.length <= LARGE_BYTES) return payload
  const body = typeof payload === 'string' ? Buffer.from(payload) : payload
  void reply.header('content-length', body.length)
  stalled.watchAnswer(reply.raw)
  return Readable.from(piecesOf(body), { objectMode: false })
}

function isWhole(payload: unknown): payload is string | Buffer {
  return typeof payload === 'string' || Buffer.isBuffer(payload)
}

function* piecesOf(body: Buffer): Generator<Buffer> {
  for (let at = 0; at < body.length; at += PIECE_BYTES) yield body.subarray(at, at + PIECE_BYTES)
}
