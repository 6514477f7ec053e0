import type { LogLayout, PartitionRange } from '#libs/ports/event-log/event-log.js'
import type { UsageSink } from '#libs/ports/usage/usage-store.js'
import { PeriodicTask } from '#libs/runtime/timing.js'

export interface CountedUpToOptions {
  log: LogLayout
  sink: Pick<UsageSink, 'writtenTo'>
  now: () => Date
  /** Called with each error of reading the ends of the log. */
  onError: (error: unknown) => void
}

interface Sample {
  at: Date
  ranges: readonly PartitionRange[]
}

/** The topics from which reports are computed. */
const TOPICS = ['usage-events', 'inbox-events'] as const
const SAMPLE_EVERY_MS = 1_000
/** If counting is further behind than the oldest sample, the result is null. */
const MAX_SAMPLES = 60
/** Processes buffer usage events for half a second before they append them. */
const APPENDED_WITHIN_MS = 1_000

/**
 * Finds the time up to which usage is completely counted. It samples the ends of the log once a second. When the store
 * has everything up to those ends, all usage until the time of the sample is counted.
 */
export class CountedUpTo {
  private samples: Sample[] = []
  readonly sampling: PeriodicTask

  constructor(private readonly options: CountedUpToOptions) {
    const work = () => this.sample().catch(options.onError)
    this.sampling = new PeriodicTask({ work, everyMs: SAMPLE_EVERY_MS })
  }

  /** Samples the ends of the log. Rejects with LogUnavailableError. */
  async sample(): Promise<void> {
    const { log, now } = this.options
    const at = now()
    const topologies = await Promise.all(TOPICS.map((topic) => log.topology(topic)))
    const sample = { at, ranges: topologies.flatMap(({ partitions }) => partitions) }
    this.samples = [...this.samples, sample].slice(-MAX_SAMPLES)
  }

  /**
   * Figures that are read after it resolves include everything that happened before the returned time, except for usage
   * events that a process could not append immediately. Null if counting is more than a minute behind, or this process
   * has just started. Rejects with UsageUnavailableError.
   */
  async find(): Promise<Date | null> {
    const { log, sink } = this.options
    const written = new Map<string, ReadonlyMap<number, number>>()
    for (const topic of TOPICS) written.set(topic, await sink.writtenTo(log.logId, topic))
    const isCounted = ({ topic, partition, first, end }: PartitionRange) =>
      (written.get(topic)?.get(partition) ?? first) >= end
    const newest = this.samples.findLast(({ ranges }) => ranges.every(isCounted))
    return newest === undefined ? null : new Date(newest.at.getTime() - APPENDED_WITHIN_MS)
  }
}
