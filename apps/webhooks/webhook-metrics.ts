import { Counter, Gauge, Histogram, type Registry } from 'prom-client'

/** The results of attempts, as the label of metrics. `unknown`: the outcome could not be recorded. */
const ATTEMPT_RESULTS = ['succeeded', 'failed', 'abandoned', 'unknown'] as const

export type AttemptResult = (typeof ATTEMPT_RESULTS)[number]

/** The metrics of the webhooks role. */
export class WebhookMetrics {
  readonly requested: Counter
  readonly disabled: Counter
  private readonly attempts: Counter<'result'>
  private readonly latency: Histogram
  private readonly lateness: Histogram
  private readonly inProgress: Gauge

  /** `earliestDue`: the due time of the delivery that has been due the longest; null if there is no delivery. */
  constructor(registry: Registry, earliestDue: () => Promise<Date | null>, now: () => Date) {
    const registers = [registry]
    new Gauge({
      name: 'mayfly_webhook_oldest_due_seconds',
      help: 'How long the oldest due delivery has been due, even if it is being attempted; 0 if none is due.',
      registers,
      async collect() {
        const dueAt = await earliestDue().catch(() => undefined)
        if (dueAt === undefined) this.set(Number.NaN)
        else this.set(dueAt === null ? 0 : Math.max(now().getTime() - dueAt.getTime(), 0) / 1_000)
      },
    })
    this.requested = new Counter({
      name: 'mayfly_webhook_deliveries_requested_total',
      help: 'Deliveries requested, including repeated requests.',
      registers,
    })
    this.disabled = new Counter({
      name: 'mayfly_webhooks_disabled_total',
      help: 'Webhooks disabled because their endpoint is gone or kept failing.',
      registers,
    })
    this.attempts = new Counter({
      name: 'mayfly_webhook_attempts_total',
      help: 'Delivery attempts, by result.',
      labelNames: ['result'],
      registers,
    })
    for (const result of ATTEMPT_RESULTS) this.attempts.inc({ result }, 0)
    this.latency = new Histogram({
      name: 'mayfly_webhook_attempt_seconds',
      help: 'Time from the start of an attempt to its response or failure.',
      buckets: [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 15],
      registers,
    })
    this.lateness = new Histogram({
      name: 'mayfly_webhook_attempt_lateness_seconds',
      help: 'Time from when an attempt was due to its start.',
      buckets: [0.01, 0.05, 0.1, 0.5, 1, 5, 30, 300, 3_600],
      registers,
    })
    this.inProgress = new Gauge({
      name: 'mayfly_webhook_attempts_in_progress',
      help: 'Attempts in progress.',
      registers,
    })
  }

  started(latenessMs: number): void {
    this.inProgress.inc()
    this.lateness.observe(Math.max(latenessMs, 0) / 1_000)
  }

  ended(result: AttemptResult, latencyMs: number | null): void {
    this.inProgress.dec()
    this.attempts.inc({ result })
    if (latencyMs !== null) this.latency.observe(latencyMs / 1_000)
  }
}
