import { Counter, Histogram, type Registry } from 'prom-client'
import { VIEWED_TOPICS } from '#libs/ports/event-log/topics.js'
import { FALLBACK_CODES } from './parse-task.js'

/** The metrics of the projector. */
export function projectorMetrics(registry: Registry) {
  const registers = [registry]
  const metrics = {
    records: new Counter({
      name: 'mayfly_projected_records_total',
      help: 'Records of the log written to the views.',
      labelNames: ['topic'],
      registers,
    }),
    batchSeconds: new Histogram({
      name: 'mayfly_projection_batch_seconds',
      help: 'Time from receiving a batch until it is in the views.',
      labelNames: ['topic'],
      buckets: [0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 10],
      registers,
    }),
    deadLetters: new Counter({
      name: 'mayfly_dead_letters_total',
      help: 'Records that could not be decoded and were written to the dead letters.',
      labelNames: ['topic'],
      registers,
    }),
    parseSeconds: new Histogram({
      name: 'mayfly_parse_cpu_seconds',
      help: 'CPU time of parsing one mail.',
      buckets: [0.001, 0.005, 0.02, 0.1, 0.5, 1, 2],
      registers,
    }),
    fallbacks: new Counter({
      name: 'mayfly_parse_fallbacks_total',
      help: 'Mails that were not parsed completely: at most their header is shown.',
      labelNames: ['reason'],
      registers,
    }),
  }
  // Start at zero, so that the first one shows as an increase.
  for (const topic of VIEWED_TOPICS) metrics.deadLetters.inc({ topic }, 0)
  for (const reason of FALLBACK_CODES) metrics.fallbacks.inc({ reason }, 0)
  return metrics
}

export type ProjectorMetrics = ReturnType<typeof projectorMetrics>
