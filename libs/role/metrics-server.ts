import { createServer, type Server, type ServerResponse } from 'node:http'
import type { Logger } from 'pino'
import type { Registry } from 'prom-client'
import { listenError } from '#libs/runtime/process/listen-error.js'
import { MetricsText } from '#libs/runtime/process/metrics-text.js'
import type { Engine } from '#libs/engines/engine.js'
import { measureWholeBacklog } from '#libs/ports/read-model/backlog.js'
import { UnavailableError } from '#libs/runtime/errors.js'
import { beforeDeadline, DeadlineError } from '#libs/runtime/timing/waiting.js'

export interface MetricsServerOptions {
  registry: Registry
  readiness: () => Promise<Readiness>
  logger: Logger
  host: string
  port: number
}

interface Answers {
  metrics: MetricsText
  readiness: MetricsServerOptions['readiness']
}

type Answer = (answers: Answers, response: ServerResponse) => Promise<void>

const ANSWERS: ReadonlyMap<string, Answer> = new Map([
  ['/healthz', answerHealth],
  ['/readyz', answerReadiness],
  ['/metrics', answerMetrics],
])

/**
 * Serves /metrics, /healthz and /readyz on a port of its own. Resolves once it listens; rejects if the port is
 * taken.
 */
export async function startMetricsServer(options: MetricsServerOptions): Promise<Server> {
  const { host, port, logger, registry, readiness } = options
  const answers = { metrics: new MetricsText(registry), readiness }
  const server = createServer((request, response) => {
    const answer = ANSWERS.get(request.url ?? '')
    if (answer === undefined) {
      response.writeHead(404).end()
    } else if (request.method !== 'GET' && request.method !== 'HEAD') {
      response.writeHead(405, { allow: 'GET, HEAD' }).end()
    } else {
      answer(answers, response).catch((error: unknown) => {
        logger.error({ err: error, path: request.url }, 'a request to the metrics port could not be answered')
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

function answerHealth(_: Answers, response: ServerResponse): Promise<void> {
  sendJson(response, 200, { status: 'ok' })
  return Promise.resolve()
}

async function answerReadiness({ readiness }: Answers, response: ServerResponse): Promise<void> {
  const ready = await readiness()
  sendJson(response, ready.status === 'ready' ? 200 : 503, ready)
}

async function answerMetrics({ metrics }: Answers, response: ServerResponse): Promise<void> {
  const text = await metrics.read()
  response.writeHead(200, { 'content-type': metrics.contentType }).end(text)
}

function sendJson(response: ServerResponse, status: number, body: object): void {
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body))
}

export interface Readiness {
  status: 'ready' | 'starting' | 'ending' | 'catching-up' | 'unavailable'
  /** Records on the log that the views don't show yet, where that is known. */
  backlog?: number
}

/** Whoever probes does not wait for long. */
const LOOK_WITHIN_MS = 2_000

/** Views that catch up wait for these roles, and not the other way round. */
const WORK_THE_BACKLOG_OFF: ReadonlySet<string> = new Set(['projector', 'lifecycle', 'webhooks', 'analytics'])

/** Whether a process that has started can do its part: log and views answer, and know enough for its role. */
export async function measureReadiness(
  role: string,
  { log, inboxes }: Pick<Engine, 'log' | 'inboxes'>,
): Promise<Readiness> {
  try {
    const { records: backlog, isCatchingUp } = await beforeDeadline(
      LOOK_WITHIN_MS,
      measureWholeBacklog(log, inboxes),
    )
    const mustWait = isCatchingUp && !WORK_THE_BACKLOG_OFF.has(role)
    return { status: mustWait ? 'catching-up' : 'ready', backlog }
  } catch (error) {
    if (error instanceof UnavailableError || error instanceof DeadlineError) return { status: 'unavailable' }
    throw error
  }
}
