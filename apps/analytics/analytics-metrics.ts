import { Counter, Histogram, type Registry } from 'prom-client'

const BUCKETS_S = [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10]
const labelNames = ['topic'] as const

/** What the sink of usage figures counts. */
export class AnalyticsMetrics {
  readonly rows: Counter<'topic'>
  readonly batchSeconds: Histogram<'topic'>
  readonly repeats: Counter<'topic'>
  readonly failures: Counter<'topic'>
  readonly deadLetters: Counter<'topic'>

  constructor(registry: Registry) {
    const registers = [registry]
    const counter = (name: string, help: string) => new Counter({ name, help, labelNames, registers })
    this.rows = counter('mayfly_usage_rows_total', 'Rows written to the store of usage figures.')
    this.batchSeconds = new Histogram({
      name: 'mayfly_usage_batch_seconds',
      help: 'From noting a batch of usage figures on the log to its being written.',
      labelNames,
      registers,
      buckets: BUCKETS_S,
    })
    this.repeats = counter(
      'mayfly_usage_repeats_total',
      'Batches of usage figures that were in doubt, and written again.',
    )
    this.failures = counter(
      'mayfly_usage_failures_total',
      'Batches of usage figures that could not be written, and were tried again.',
    )
    this.deadLetters = counter(
      'mayfly_usage_dead_letters_total',
      'Usage events that could not be decoded and were set aside.',
    )
  }
}
