import { VIEWED_TOPICS } from '#libs/ports/event-log/topics.js'
import { Counter, Histogram, type Registry } from 'prom-client'
import { DEFEATS } from './parse-task.js'

/** What the projector counts. */
export function projectorMetrics(registry: Registry) {
  const registers = [registry]
  const metrics = {
    records: new Counter({
      name: 'mayfly_projected_records_total',
      help: 'Records of the log that the views have taken in.',
      labelNames: ['topic'],
      registers,
    }),
    batchSeconds: new Histogram({
      name: 'mayfly_projection_batch_seconds',
      help: 'Time from a batch being handed over to its being in the views.',
      labelNames: ['topic'],
      buckets: [0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 10],
      registers,
    }),
    deadLetters: new Counter({
      name: 'mayfly_dead_letters_total',
      help: 'Records that could not be decoded and were set aside.',
      labelNames: ['topic'],
      registers,
    }),
    parseSeconds: new Histogram({
      name: 'mayfly_parse_cpu_seconds',
      help: 'CPU time of reading one mail.',
      buckets: [0.001, 0.005, 0.02, 0.1, 0.5, 1, 2],
      registers,
    }),
    defeats: new Counter({
      name: 'mayfly_parse_defeats_total',
      help: 'Mails that were not read as a whole: of which at most the header is shown.',
      labelNames: ['reason'],
      registers,
    }),
  }
  // From zero on, so that the first one shows as an increase.
  for (const topic of VIEWED_TOPICS) metrics.deadLetters.inc({ topic }, 0)
  for (const reason of DEFEATS) metrics.defeats.inc({ reason }, 0)
  return metrics
}

export type ProjectorMetrics = ReturnType<typeof projectorMetrics>
