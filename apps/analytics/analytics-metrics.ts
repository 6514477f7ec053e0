import { Counter, Histogram, type Registry } from 'prom-client'
import type { CountedTopic } from './event-rows.js'

const BUCKETS_S = [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10]

/** What the sink of usage figures counts. */
export class AnalyticsMetrics {
  readonly deadLetters: Counter<'topic'>
  private readonly rows: Counter<'topic'>
  private readonly batches: Histogram<'topic'>
  private readonly repeats: Counter<'topic'>
  private readonly failures: Counter<'topic'>

  constructor(registry: Registry) {
    const registers = [registry]
    const labelNames = ['topic'] as const
    this.rows = new Counter({
      name: 'mayfly_usage_rows_total',
      help: 'Rows written to the store of usage figures.',
      labelNames,
      registers,
    })
    this.batches = new Histogram({
      name: 'mayfly_usage_batch_seconds',
      help: 'From noting a batch of usage figures on the log to its being written.',
      labelNames,
      registers,
      buckets: BUCKETS_S,
    })
    this.repeats = new Counter({
      name: 'mayfly_usage_repeats_total',
      help: 'Batches of usage figures that were in doubt, and written again.',
      labelNames,
      registers,
    })
    this.failures = new Counter({
      name: 'mayfly_usage_failures_total',
      help: 'Batches of usage figures that could not be written, and were tried again.',
      labelNames,
      registers,
    })
    this.deadLetters = new Counter({
      name: 'mayfly_usage_dead_letters_total',
      help: 'Usage events that could not be decoded and were set aside.',
      labelNames,
      registers,
    })
  }

  wrote(topic: CountedTopic, rows: number, ms: number): void {
    this.rows.inc({ topic }, rows)
    this.batches.observe({ topic }, ms / 1_000)
  }

  repeated(topic: CountedTopic): void {
    this.repeats.inc({ topic })
  }

  failed(topic: CountedTopic): void {
    this.failures.inc({ topic })
  }
}
