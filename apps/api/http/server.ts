import { randomUUID } from 'node:crypto'
import { FastifyAdapter } from '@nestjs/platform-fastify'
import { LogController, type FastifyInstance, type FastifyReply, type FastifyRequest } from 'fastify'
import type { Logger } from 'pino'
import { principalOf } from '../access/authenticator.js'
import type { ApiMetrics } from '../operations/api-metrics.js'
import type { Idempotency } from '../idempotency/idempotency.js'
import { takeJson } from './bodies.js'
import {
  answerBesideRequests,
  answerClientErrors,
  answerFrameworkErrors,
  mustNameHost,
} from './broken-requests.js'
import type { MethodTable } from './method-table.js'
import { unavailable } from './problems.js'

const BODY_LIMIT_BYTES = 256 * 1024
const REQUEST_TIMEOUT_MS = 60_000
const KEEP_ALIVE_MS = 72_000
/** Any length that the headers' limit lets through: an id that is too long is an unknown one. */
const MOST_PARAM_CHARACTERS = 1 << 16

export interface ServerOptions {
  logger: Logger
  metrics: ApiMetrics
  methods: MethodTable
  isShuttingDown: () => boolean
  /** What links in problems begin with. */
  publicUrl: () => string
  /** Throws where the request needs a key and has no valid one. */
  authenticate: (request: FastifyRequest) => Promise<void>
  /** Counts a request that was authenticated; throws where there were too many. */
  limit: (request: FastifyRequest, reply: FastifyReply) => Promise<void>
  idempotency: Idempotency
}

/** Fastify under Nest: request ids, bodies, one log line and one observation per request. */
export function makeServer({
  logger,
  metrics,
  methods,
  isShuttingDown,
  publicUrl,
  authenticate,
  limit,
  idempotency,
}: ServerOptions): FastifyAdapter {
  const makeRequestId = () => `req_${randomUUID().replaceAll('-', '')}`
  const broken = { publicUrl, makeRequestId }
  const admit = async (request: FastifyRequest, reply: FastifyReply) => {
    void reply.header('x-request-id', request.id)
    if (isShuttingDown()) throw unavailable('shutting-down', 'This instance takes no more requests.')
    mustNameHost(request)
    await authenticate(request)
    await limit(request, reply)
  }
  const adapter = new FastifyAdapter({
    loggerInstance: logger,
    logController: new LogController({ disableRequestLogging: true }),
    genReqId: makeRequestId,
    clientErrorHandler: answerClientErrors(broken),
    frameworkErrors: answerFrameworkErrors({ publicUrl, admit }),
    http: { requireHostHeader: false },
    bodyLimit: BODY_LIMIT_BYTES,
    requestTimeout: REQUEST_TIMEOUT_MS,
    keepAliveTimeout: KEEP_ALIVE_MS,
    return503OnClosing: false,
    forceCloseConnections: 'idle',
    routerOptions: { maxParamLength: MOST_PARAM_CHARACTERS },
  })
  const server: FastifyInstance = adapter.getInstance()
  // Who has ended sending still gets the answers: by itself Node closes on them (RFC 9112, section 9.6).
  Object.assign(server.server, { httpAllowHalfOpen: true })
  answerBesideRequests(server.server, broken)
  methods.watch(server)
  takeJson(server)
  server.addHook('onRequest', admit)
  idempotency.watch(server)
  // A connection kept open would hold the end up until its client lets go of it.
  server.addHook('onSend', async (_, reply) => {
    if (isShuttingDown()) void reply.header('connection', 'close')
  })
  server.addHook('onResponse', async (request, reply) => {
    const route = request.routeOptions.url ?? 'unknown'
    const ms = Math.round(reply.elapsedTime * 100) / 100
    metrics.observe(request.method, route, reply.statusCode, reply.elapsedTime)
    request.log.info(
      { ...who(request), method: request.method, route, status: reply.statusCode, ms },
      'request',
    )
  })
  return adapter
}

function who(request: FastifyRequest): Record<string, string> {
  const principal = principalOf(request)
  return principal === null ? {} : { accountId: principal.accountId, keyId: principal.keyId }
}
