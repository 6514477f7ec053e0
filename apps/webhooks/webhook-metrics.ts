import { Counter, Gauge, Histogram, type Registry } from 'prom-client'

/** What became of an attempt, as metrics and log lines have it. */
export type AttemptResult = 'succeeded' | 'failed' | 'abandoned' | 'unknown'

/** What the webhooks count. */
export class WebhookMetrics {
  readonly requested: Counter
  readonly disabled: Counter
  private readonly attempts: Counter<'result'>
  private readonly latency: Histogram
  private readonly lateness: Histogram
  private readonly underWay: Gauge

  /** `earliestDue`: when what has been due for longest was to be attempted; null if nothing is to be. */
  constructor(registry: Registry, earliestDue: () => Promise<Date | null>, now: () => Date) {
    const registers = [registry]
    new Gauge({
      name: 'mayfly_webhook_oldest_due_seconds',
      help: 'For how long the attempt that has waited longest has been due, under way or not; 0 where none is due.',
      registers,
      async collect() {
        const dueAt = await earliestDue().catch(() => undefined)
        if (dueAt === undefined) this.set(Number.NaN)
        else this.set(dueAt === null ? 0 : Math.max(now().getTime() - dueAt.getTime(), 0) / 1_000)
      },
    })
    this.requested = new Counter({
      name: 'mayfly_webhook_deliveries_requested_total',
      help: 'Deliveries that were asked for, those asked for again included.',
      registers,
    })
    this.disabled = new Counter({
      name: 'mayfly_webhooks_disabled_total',
      help: 'Webhooks disabled for how their endpoints answered.',
      registers,
    })
    this.attempts = new Counter({
      name: 'mayfly_webhook_attempts_total',
      help: 'Attempts to deliver, by what became of them.',
      labelNames: ['result'],
      registers,
    })
    for (const result of ['succeeded', 'failed', 'abandoned', 'unknown']) this.attempts.inc({ result }, 0)
    this.latency = new Histogram({
      name: 'mayfly_webhook_attempt_seconds',
      help: 'From the beginning of an attempt to its answer, or failure.',
      buckets: [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 15],
      registers,
    })
    this.lateness = new Histogram({
      name: 'mayfly_webhook_attempt_lateness_seconds',
      help: 'From when an attempt was due to its beginning.',
      buckets: [0.01, 0.05, 0.1, 0.5, 1, 5, 30, 300, 3_600],
      registers,
    })
    this.underWay = new Gauge({
      name: 'mayfly_webhook_attempts_under_way',
      help: 'Attempts that have begun and have not ended.',
      registers,
    })
  }

  begun(latenessMs: number): void {
    this.underWay.inc()
    this.lateness.observe(Math.max(latenessMs, 0) / 1_000)
  }

  ended(result: AttemptResult, latencyMs: number | null): void {
    this.underWay.dec()
    this.attempts.inc({ result })
    if (latencyMs !== null) this.latency.observe(latencyMs / 1_000)
  }
}
