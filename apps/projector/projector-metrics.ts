import type { Registry } from 'prom-client'
import { VIEWED_TOPICS } from '#libs/ports/event-log/topics.js'
import { Metrics } from '#libs/runtime/process/metrics.js'
import { FALLBACK_CODES } from './parse-task.js'

export function projectorMetrics(registry: Registry) {
  const make = new Metrics(registry)
  const metrics = {
    records: make.counter('mayfly_projected_records_total', 'Records of the log written to the views.', [
      'topic',
    ]),
    batchSeconds: make.histogram(
      'mayfly_projection_batch_seconds',
      'Time from receiving a batch until it is in the views.',
      [0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 10],
      ['topic'],
    ),
    deadLetters: make.counter(
      'mayfly_dead_letters_total',
      'Records that could not be decoded and were written to the dead letters.',
      ['topic'],
    ),
    parseSeconds: make.histogram(
      'mayfly_parse_cpu_seconds',
      'CPU time of parsing one mail.',
      [0.001, 0.005, 0.02, 0.1, 0.5, 1, 2],
    ),
    fallbacks: make.counter(
      'mayfly_parse_fallbacks_total',
      'Mails that were not parsed completely: at most their header is shown.',
      ['reason'],
    ),
  }
  // Start at zero, so that the first one shows as an increase.
  for (const topic of VIEWED_TOPICS) metrics.deadLetters.inc({ topic }, 0)
  for (const reason of FALLBACK_CODES) metrics.fallbacks.inc({ reason }, 0)
  return metrics
}

export type ProjectorMetrics = ReturnType<typeof projectorMetrics>
