import { Counter, Histogram, type Registry } from 'prom-client'

const BUCKETS_S = [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10]
const labelNames = ['topic'] as const

/** The metrics of the analytics role. */
export class AnalyticsMetrics {
  readonly rows: Counter<'topic'>
  readonly batchSeconds: Histogram<'topic'>
  readonly repeats: Counter<'topic'>
  readonly failures: Counter<'topic'>
  readonly deadLetters: Counter<'topic'>

  constructor(registry: Registry) {
    const registers = [registry]
    const counter = (name: string, help: string) => new Counter({ name, help, labelNames, registers })
    this.rows = counter('mayfly_usage_rows_total', 'Rows written to the usage store.')
    this.batchSeconds = new Histogram({
      name: 'mayfly_usage_batch_seconds',
      help: 'Time from committing the ranges of a batch of usage rows until the batch is written.',
      labelNames,
      registers,
      buckets: BUCKETS_S,
    })
    this.repeats = counter(
      'mayfly_usage_repeats_total',
      'Batches of usage rows that were in doubt and were written again.',
    )
    this.failures = counter(
      'mayfly_usage_failures_total',
      'Writes of batches of usage rows that failed and were retried.',
    )
    this.deadLetters = counter(
      'mayfly_usage_dead_letters_total',
      'Usage events that could not be decoded and were written to the dead letters.',
    )
  }
}
