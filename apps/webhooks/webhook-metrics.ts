import type { Registry } from 'prom-client'
import { Metrics } from '#libs/runtime/process/metrics.js'

/** The results of attempts, as the label of metrics. `unknown`: the outcome could not be recorded. */
const ATTEMPT_RESULTS = ['succeeded', 'failed', 'abandoned', 'unknown'] as const

/**
 * The metrics of the webhooks role. `earliestDue`: the due time of the delivery that has been due the longest; null if
 * there is no delivery.
 */
export function webhookMetrics(registry: Registry, earliestDue: () => Promise<Date | null>, now: () => Date) {
  const make = new Metrics(registry)
  make.gauge(
    'mayfly_webhook_oldest_due_seconds',
    'How long the oldest due delivery has been due, even if it is being attempted; 0 if none is due.',
    async () => {
      const dueAt = await earliestDue()
      return dueAt === null ? 0 : Math.max(now().getTime() - dueAt.getTime(), 0) / 1_000
    },
  )
  const metrics = {
    requested: make.counter(
      'mayfly_webhook_deliveries_requested_total',
      'Deliveries requested, including repeated requests.',
    ),
    disabled: make.counter(
      'mayfly_webhooks_disabled_total',
      'Webhooks disabled because their endpoint is gone or kept failing.',
    ),
    attempts: make.counter('mayfly_webhook_attempts_total', 'Delivery attempts, by result.', ['result']),
    latency: make.histogram(
      'mayfly_webhook_attempt_seconds',
      'Time from the start of an attempt to its response or failure.',
      [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 15],
    ),
    lateness: make.histogram(
      'mayfly_webhook_attempt_lateness_seconds',
      'Time from when an attempt was due to its start.',
      [0.01, 0.05, 0.1, 0.5, 1, 5, 30, 300, 3_600],
    ),
    inProgress: make.gauge('mayfly_webhook_attempts_in_progress', 'Attempts in progress.'),
  }
  for (const result of ATTEMPT_RESULTS) metrics.attempts.inc({ result }, 0)
  return metrics
}

export type WebhookMetrics = ReturnType<typeof webhookMetrics>
