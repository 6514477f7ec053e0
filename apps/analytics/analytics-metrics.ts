import type { Registry } from 'prom-client'
import { Metrics } from '#libs/runtime/process/metrics.js'

/** The metrics of the analytics role. */
export function analyticsMetrics(registry: Registry) {
  const make = new Metrics(registry)
  const counter = (name: string, help: string) => make.counter(name, help, ['topic'])
  return {
    rows: counter('mayfly_usage_rows_total', 'Rows written to the usage store.'),
    batchSeconds: make.histogram(
      'mayfly_usage_batch_seconds',
      'Time from committing the ranges of a batch of usage rows until the batch is written.',
      [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10],
      ['topic'],
    ),
    repeats: counter(
      'mayfly_usage_repeats_total',
      'Batches of usage rows that were in doubt and were written again.',
    ),
    failures: counter(
      'mayfly_usage_failures_total',
      'Writes of batches of usage rows that failed and were retried.',
    ),
    deadLetters: counter(
      'mayfly_usage_dead_letters_total',
      'Usage events that could not be decoded and were written to the dead letters.',
    ),
  }
}

export type AnalyticsMetrics = ReturnType<typeof analyticsMetrics>
