import type { Logger } from 'pino'
import type { Registry } from 'prom-client'
import type { EventSource } from '#libs/ports/event-log/cloud-event.js'
import type { LogAppender } from '#libs/ports/event-log/event-log.js'
import { UsageRecorder } from '#libs/ports/usage/usage-recorder.js'
import { errorLog } from '#libs/runtime/process/error-log.js'
import { Metrics } from '#libs/runtime/process/metrics.js'

export interface MeasuredUsageOptions {
  log: LogAppender
  source: EventSource
  now: () => Date
  logger: Logger
  registry: Registry
}

/** Returns a recorder of usage events for one role. Events that it drops are logged and counted. */
export function measuredUsage({ log, source, now, logger, registry }: MeasuredUsageOptions): UsageRecorder {
  const lost = new Metrics(registry).counter(
    'mayfly_lost_usage_events_total',
    'Usage events dropped because the log was unavailable for too long.',
  )
  const logError = errorLog(logger, { outcome: 'given up' })
  return new UsageRecorder({
    log,
    source,
    now,
    onLost: (count, error) => {
      lost.inc(count)
      logError(error, 'appending usage events')
    },
  })
}
