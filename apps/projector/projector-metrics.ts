import { SOURCE_TOPICS } from '#libs/event-log/topics.js'
import { Counter, Histogram, type Registry } from 'prom-client'

/** What the projector counts. */
export class ProjectorMetrics {
  readonly deadLetters: Counter<'topic'>
  private readonly records: Counter<'topic'>
  private readonly batchSeconds: Histogram<'topic'>

  constructor(registry: Registry) {
    this.records = new Counter({
      name: 'mayfly_projected_records_total',
      help: 'Records of the log that the views have taken in.',
      labelNames: ['topic'],
      registers: [registry],
    })
    this.batchSeconds = new Histogram({
      name: 'mayfly_projection_batch_seconds',
      help: 'Time from a batch being handed over to its being in the views.',
      labelNames: ['topic'],
      buckets: [0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 10],
      registers: [registry],
    })
    this.deadLetters = new Counter({
      name: 'mayfly_dead_letters_total',
      help: 'Records that could not be decoded and were set aside.',
      labelNames: ['topic'],
      registers: [registry],
    })
    // From zero on, so that the first one shows as an increase.
    for (const topic of SOURCE_TOPICS) this.deadLetters.inc({ topic }, 0)
  }

  batch(topic: string, records: number, ms: number): void {
    this.records.inc({ topic }, records)
    this.batchSeconds.observe({ topic }, ms / 1000)
  }
}
