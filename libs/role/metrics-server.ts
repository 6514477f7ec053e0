import { createServer, type Server, type ServerResponse } from 'node:http'
import type { Logger } from 'pino'
import type { Registry } from 'prom-client'
import type { Engine } from '#libs/engines/engine.js'
import { measureBacklog } from '#libs/ports/read-model/consistent-views.js'
import { UnavailableError } from '#libs/runtime/errors.js'
import { listenError } from '#libs/runtime/process/listen-error.js'
import { MetricsText } from '#libs/runtime/process/metrics.js'
import { beforeDeadline, DeadlineError } from '#libs/runtime/timing.js'

export interface MetricsServerOptions {
  registry: Registry
  readiness: () => Promise<Readiness>
  logger: Logger
  host: string
  port: number
}

const PATHS: ReadonlySet<string> = new Set(['/healthz', '/readyz', '/metrics'])

/**
 * Serves /metrics, /healthz and /readyz on a separate port. Resolves once it listens; rejects if the port is in
 * use.
 */
export async function startMetricsServer(options: MetricsServerOptions): Promise<Server> {
  const { host, port, logger, readiness } = options
  const metrics = new MetricsText(options.registry)
  const answer = async (path: string, response: ServerResponse): Promise<void> => {
    if (path === '/healthz') {
      sendJson(response, 200, { status: 'ok' })
    } else if (path === '/readyz') {
      const ready = await readiness()
      sendJson(response, ready.status === 'ready' ? 200 : 503, ready)
    } else {
      const text = await metrics.read()
      response.writeHead(200, { 'content-type': metrics.contentType }).end(text)
    }
  }
  const server = createServer(({ method, url: path = '' }, response) => {
    if (!PATHS.has(path)) {
      response.writeHead(404).end()
    } else if (method !== 'GET' && method !== 'HEAD') {
      response.writeHead(405, { allow: 'GET, HEAD' }).end()
    } else {
      answer(path, response).catch((error: unknown) => {
        logger.error({ err: error, path }, 'a request to the metrics port failed')
        response.writeHead(500).end()
      })
    }
  })
  await new Promise<void>((resolve, reject) => {
    const settings = { host: 'MAYFLY_HTTP_HOST', port: 'MAYFLY_METRICS_PORT' }
    server.once('error', (error) => reject(listenError(error, settings)))
    server.listen(port, host, resolve)
  })
  return server
}

function sendJson(response: ServerResponse, status: number, body: object): void {
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body))
}

export interface Readiness {
  status: 'ready' | 'starting' | 'ending' | 'catching-up' | 'unavailable'
  /** Records on the log that the views don't show yet, if the number is known. */
  backlog?: number
}

/** Shorter than the timeout of common probes. */
const READINESS_TIMEOUT_MS = 2_000

/** Roles that work while the views catch up. The others need complete views. */
const READY_WHILE_CATCHING_UP: ReadonlySet<string> = new Set([
  'projector',
  'lifecycle',
  'webhooks',
  'analytics',
])

/**
 * Whether a started process can serve its role: the log and the views respond, and are complete if the role needs it.
 */
export async function measureReadiness(
  role: string,
  { log, inboxes }: Pick<Engine, 'log' | 'inboxes'>,
): Promise<Readiness> {
  try {
    const { records: backlog, isCatchingUp } = await beforeDeadline(
      READINESS_TIMEOUT_MS,
      measureBacklog(log, inboxes),
    )
    const isWaiting = isCatchingUp && !READY_WHILE_CATCHING_UP.has(role)
    return { status: isWaiting ? 'catching-up' : 'ready', backlog }
  } catch (error) {
    if (error instanceof UnavailableError || error instanceof DeadlineError) return { status: 'unavailable' }
    throw error
  }
}
