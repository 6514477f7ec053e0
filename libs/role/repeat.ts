import { PeriodicTask } from '#libs/runtime/timing.js'
import type { EngineContext } from './run-role.js'

/** Runs work again and again until the role ends. Logs its errors, with the text of `failure`. */
export function repeat(
  { logger, running }: Pick<EngineContext, 'logger' | 'running'>,
  everyMs: number,
  failure: string,
  work: (signal: AbortSignal) => Promise<void>,
): void {
  const task = new PeriodicTask({
    everyMs,
    work: (signal) => work(signal).catch((error: unknown) => logger.error({ err: error }, failure)),
  })
  task.start()
  running.defer(() => task.stop())
}
