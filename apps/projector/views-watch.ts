import type { EventLog, Partition } from '#libs/event-log/event-log.js'
import { SOURCE_TOPICS } from '#libs/event-log/topics.js'
import type { InboxQueries } from '#libs/read-model/queries.js'
import { movedChannel } from '#libs/read-model/watermark.js'
import { Repetition } from '#libs/timing/repetition.js'

export interface ViewsWatchOptions {
  log: Pick<EventLog, 'topology'>
  queries: Pick<InboxQueries, 'progress'>
  /** Asks for every start position anew. */
  beginAgain: () => Promise<void>
  onLost: (partition: Partition) => void
  onError: (error: unknown) => void
}

const LOOK_EVERY_MS = 1_000

/**
 * Notices views that were emptied or put back from an older copy while no event comes that would meet them: they
 * are begun again, which rebuilds what is missing.
 */
export class ViewsWatch {
  private readonly positions = new Map<string, number>()
  private readonly looking: Repetition

  constructor(private readonly options: ViewsWatchOptions) {
    const work = () => this.look().catch(options.onError)
    this.looking = new Repetition({ everyMs: LOOK_EVERY_MS, firstAfterMs: LOOK_EVERY_MS, work })
  }

  start(): void {
    this.looking.start()
  }

  /** Resolves once the look under way is over. */
  stop(): Promise<void> {
    return this.looking.stop()
  }

  private async look(): Promise<void> {
    const { log, onLost, beginAgain } = this.options
    for (const topic of SOURCE_TOPICS) {
      const { partitions } = await log.topology(topic)
      const states = await Promise.all(partitions.map((partition) => this.isLost(partition)))
      const lost = partitions.find((_, index) => states[index])
      if (lost === undefined) continue
      onLost({ topic, partition: lost.partition })
      this.positions.clear()
      await beginAgain()
      return
    }
  }

  private async isLost({ topic, partition }: Partition): Promise<boolean> {
    const progress = await this.options.queries.progress({ topic, partition })
    const name = movedChannel({ topic, partition })
    const before = this.positions.get(name) ?? 0
    if (progress !== null) this.positions.set(name, progress.position)
    return progress === null || progress.position < before
  }
}
