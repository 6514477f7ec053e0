import type { Logger } from 'pino'
import { Counter, type Registry } from 'prom-client'
import type { LogAppender } from '#libs/ports/event-log/event-log.js'
import type { Occurrence } from '#libs/ports/event-log/cloud-event.js'
import { UsageRecorder } from '#libs/ports/usage/usage-recorder.js'
import { faultLog } from '#libs/runtime/process/fault-log.js'

export interface MeasuredUsageOptions {
  log: LogAppender
  source: Occurrence<unknown>['source']
  now: () => Date
  logger: Logger
  registry: Registry
}

const LOST = 'mayfly_lost_usage_events_total'

/** A recorder of usage events for one role. Events that it gives up are logged and counted. */
export function measuredUsage({ log, source, now, logger, registry }: MeasuredUsageOptions): UsageRecorder {
  // Roles in one process count together.
  const known = registry.getSingleMetric(LOST)
  const lost =
    known instanceof Counter
      ? known
      : new Counter({
          name: LOST,
          help: 'Usage events that were given up, since the log did not take them for long.',
          registers: [registry],
        })
  const logFault = faultLog(logger, { then: 'given up' })
  return new UsageRecorder({
    log,
    source,
    now,
    onLost: (count, error) => {
      lost.inc(count)
      logFault(error, 'appending usage events')
    },
  })
}
