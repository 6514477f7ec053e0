import { createServer, type Server, type ServerResponse } from 'node:http'
import { collectDefaultMetrics, Gauge, Registry } from 'prom-client'
import type { Engine } from '#libs/engines/engine.js'
import { openEngine } from '#libs/engines/open-engine.js'
import { measureBacklog } from '#libs/ports/read-model/consistent-views.js'
import type { Settings } from '#libs/runtime/config/settings.js'
import { StartError, UnavailableError } from '#libs/runtime/errors.js'
import { BUILD_INFO, engineName } from '#libs/runtime/process/build-info.js'
import { errorLog } from '#libs/runtime/process/error-log.js'
import { listenError } from '#libs/runtime/process/listen-error.js'
import { anonymousBytes, Metrics, MetricsText } from '#libs/runtime/process/metrics.js'
import { type ProcessContext, runProcess, type Running } from '#libs/runtime/process/run-process.js'
import { beforeDeadline, DeadlineError } from '#libs/runtime/timing.js'
import { measureLag } from './role-consumers.js'

export interface EngineContext extends ProcessContext {
  engine: Engine
  registry: Registry
  /**
   * What a role opens is closed here, also if its start fails: deferred calls run before the engine closes, in reverse
   * order, even if one of them fails.
   */
  running: AsyncDisposableStack
}

/**
 * Opens the engine, starts the metrics server, and calls `start`. Resolves with what `start` returned and a `close`
 * for everything. If one of them fails to start, closes what had started and rejects.
 */
export async function onEngine<Started extends object>(
  role: string,
  context: ProcessContext,
  start: (context: EngineContext) => Promise<Started>,
): Promise<Started & { close(): Promise<void> }> {
  const { settings, logger, now } = context
  const running = new AsyncDisposableStack()
  let state: 'starting' | 'running' | 'ending' = 'starting'
  const close = () => {
    state = 'ending'
    return running.disposeAsync()
  }
  try {
    const registry = new Registry()
    const metrics = measureProcess(registry, settings)
    const engine = await openEngine({ settings, role, now, onError: errorLog(logger) })
    running.defer(() => engine.close())
    const { disk } = engine
    if (disk !== null) {
      metrics.gauge(
        'mayfly_free_disk_bytes',
        "Bytes that the data folder's disk can still fill before mail and requests are refused.",
        () => disk.availableBytes(),
      )
    }
    measureLag(engine.log, registry)
    if (settings.metricsPort !== null) {
      const readiness = async () =>
        state === 'running' ? measureReadiness(role, engine) : ({ status: state } as const)
      const server = await startMetricsServer({ registry, logger, settings }, settings.metricsPort, readiness)
      running.defer(() => void server.close())
    }
    const started = await start({ ...context, engine, registry, running })
    state = 'running'
    return { ...started, close }
  } catch (error) {
    await close().catch((failure: unknown) =>
      logger.error({ err: failure }, 'closing after a failed start failed'),
    )
    throw error
  }
}

/** Registers the metrics of Node, of the memory and of the build. */
function measureProcess(registry: Registry, settings: Settings): Metrics {
  collectDefaultMetrics({ register: registry })
  const metrics = new Metrics(registry)
  const { version, commit } = BUILD_INFO
  new Gauge({
    name: 'mayfly_build_info',
    help: 'Always 1; its labels name the build and the engine.',
    labelNames: ['version', 'commit', 'engine'],
    registers: [registry],
  }).set({ version, commit: commit ?? '', engine: engineName(settings) }, 1)
  metrics
    .gauge('mayfly_memory_limit_bytes', 'Memory that the process may use (MAYFLY_MEMORY_MIB).')
    .set(settings.memoryMib * 2 ** 20)
  metrics.gauge(
    'mayfly_anonymous_memory_bytes',
    'Resident memory that does not belong to files. The rest of process_resident_memory_bytes is pages of mapped ' +
      'files, which the system reclaims when it needs them. Linux only.',
    () => anonymousBytes() ?? NaN,
  )
  return metrics
}

export interface RunningRole {
  /** The ports and URLs that it listens on, if any, for the log. */
  listening?: Running['listening']
}

/** Runs one role as a separate process, on the Kafka and Redis that it shares with the other roles. */
export function runRole(
  role: string,
  start: (context: EngineContext) => Promise<RunningRole>,
): Promise<void> {
  return runProcess((process) => {
    if (process.settings.kafkaBrokers === null) {
      throw new StartError(
        `the role ${role} runs as a separate process on the distributed engine only: set KAFKA_BROKERS and the ` +
          `settings that belong to it, or run every role in one process with npm start`,
      )
    }
    return onEngine(role, process, async (context) => {
      const { listening } = await start(context)
      return { listening: { role, ...listening }, welcome: null }
    })
  })
}

const PATHS = new Set(['/healthz', '/readyz', '/metrics'])

/**
 * Serves /metrics, /healthz and /readyz on a separate port. Resolves once it listens; rejects if the port is in
 * use.
 */
async function startMetricsServer(
  { registry, logger, settings }: Pick<EngineContext, 'registry' | 'logger' | 'settings'>,
  port: number,
  readiness: () => Promise<Readiness>,
): Promise<Server> {
  const metrics = new MetricsText(registry)
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
    const names = { host: 'MAYFLY_HTTP_HOST', port: 'MAYFLY_METRICS_PORT' }
    server.once('error', (error) => reject(listenError(error, names)))
    server.listen(port, settings.httpHost, resolve)
  })
  return server
}

function sendJson(response: ServerResponse, status: number, body: object): void {
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body))
}

interface Readiness {
  status: 'ready' | 'starting' | 'ending' | 'catching-up' | 'unavailable'
  /** Records on the log that the views don't show yet, if the number is known. */
  backlog?: number
  /** Only if the process stores everything on a disk of its own. A role works on a full disk, to free space. */
  disk?: 'ok' | 'full'
}

/** Shorter than the timeout of common probes. */
const READINESS_TIMEOUT_MS = 2_000

/** Roles that work while the views catch up. The others need complete views. */
const READY_WHILE_CATCHING_UP = new Set(['projector', 'lifecycle', 'webhooks', 'analytics'])

/**
 * Whether a started process can serve its role: the log and the views respond, and are complete if the role needs it.
 */
async function measureReadiness(
  role: string,
  { log, inboxes, disk }: Pick<Engine, 'log' | 'inboxes' | 'disk'>,
): Promise<Readiness> {
  try {
    const { records: backlog, isCatchingUp } = await beforeDeadline(
      READINESS_TIMEOUT_MS,
      measureBacklog(log, inboxes),
    )
    const isWaiting = isCatchingUp && !READY_WHILE_CATCHING_UP.has(role)
    const status = isWaiting ? 'catching-up' : 'ready'
    return { status, backlog, ...(disk === null ? {} : { disk: await disk.state() }) }
  } catch (error) {
    if (error instanceof UnavailableError || error instanceof DeadlineError) return { status: 'unavailable' }
    throw error
  }
}
