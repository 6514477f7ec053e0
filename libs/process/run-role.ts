import { collectDefaultMetrics, Registry } from 'prom-client'
import { openEngine } from '#libs/engine/open-engine.js'
import type { Engine } from '#libs/engine/engine.js'
import { StartError } from '#libs/engine/start-error.js'
import { startMetricsServer } from './metrics-server.js'
import { runProcess, type ProcessContext, type Running } from './run-process.js'

export interface RoleContext extends ProcessContext {
  engine: Engine
  registry: Registry
}

/** A role under way. */
export interface RunningRole {
  /** Where it listens, if anywhere. */
  listening?: Running['listening']
  close(): Promise<void>
}

/** Runs one role as a process of its own, beside others on the same Kafka and Redis. */
export function runRole(role: string, start: (context: RoleContext) => Promise<RunningRole>): Promise<void> {
  return runProcess(async (context) => {
    const { settings, logger, now } = context
    if (settings.kafkaBrokers === null) {
      throw new StartError(
        `the role ${role} runs by itself on the distributed engine only: set KAFKA_BROKERS and what belongs to it, ` +
          `or run every role in one process with npm start`,
      )
    }
    // Closes in reverse order, each of them whatever became of the others.
    const running = new AsyncDisposableStack()
    const close = () => running.disposeAsync()
    try {
      const registry = new Registry()
      collectDefaultMetrics({ register: registry })
      const engine = await openEngine({
        settings,
        role,
        now,
        onError: (error, during) => logger.error({ err: error }, `${during} failed: tried again`),
      })
      running.defer(() => engine.close())
      if (settings.metricsPort !== null) {
        const { httpHost: host, metricsPort: port } = settings
        const server = await startMetricsServer({ registry, logger, host, port })
        running.defer(() => void server.close())
      }
      const started = await start({ ...context, engine, registry })
      running.defer(() => started.close())
      return { listening: { role, ...started.listening }, welcome: '', close }
    } catch (error) {
      await close().catch((fault: unknown) => logger.error({ err: fault }, 'what had started did not close'))
      throw error
    }
  })
}
