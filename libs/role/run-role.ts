import { StartError } from '#libs/runtime/process/start-error.js'
import { onEngine, type EngineContext } from './on-engine.js'
import { runProcess, type Running } from '#libs/runtime/process/run-process.js'

/** A role under way. */
export interface RunningRole {
  /** Where it listens, if anywhere. */
  listening?: Running['listening']
  close(): Promise<void>
}

/** Runs one role as a process of its own, beside others on the same Kafka and Redis. */
export function runRole(
  role: string,
  start: (context: EngineContext) => Promise<RunningRole>,
): Promise<void> {
  return runProcess((process) => {
    if (process.settings.kafkaBrokers === null) {
      throw new StartError(
        `the role ${role} runs by itself on the distributed engine only: set KAFKA_BROKERS and what belongs to it, ` +
          `or run every role in one process with npm start`,
      )
    }
    return onEngine(role, process, async (context) => {
      const started = await start(context)
      context.running.defer(() => started.close())
      return { listening: { role, ...started.listening }, welcome: '' }
    })
  })
}
