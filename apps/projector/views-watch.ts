import type { LogLayout, Partition } from '#libs/ports/event-log/event-log.js'
import { VIEWED_TOPICS } from '#libs/ports/event-log/topics.js'
import type { InboxQueries } from '#libs/ports/read-model/queries.js'
import { movedChannel } from '#libs/ports/read-model/consistent-views.js'
import type { RoleConsumers } from '#libs/role/role-consumers.js'
import { Repetition } from '#libs/runtime/timing/repetition.js'

export interface ViewsWatchOptions {
  log: Pick<LogLayout, 'partitionCount'>
  queries: Pick<InboxQueries, 'progress'>
  consumers: Pick<RoleConsumers, 'handledTo' | 'restart'>
  onLost: (partition: Partition) => void
  onError: (error: unknown) => void
}

const LOOK_EVERY_MS = 1_000

/**
 * Notices views that were emptied or restored from an older copy, even if no event comes: their partition is started
 * again, which rebuilds what is missing.
 */
export class ViewsWatch {
  /** As last seen, null if there was none. */
  private readonly positions = new Map<string, number | null>()
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
    for (const topic of VIEWED_TOPICS) {
      const length = this.options.log.partitionCount(topic)
      await Promise.all(Array.from({ length }, (_, partition) => this.lookAt({ topic, partition })))
    }
  }

  private async lookAt(partition: Partition): Promise<void> {
    const { queries, consumers, onLost } = this.options
    const name = movedChannel(partition)
    const seen = this.positions.get(name)
    // They may have moved on, and been put back, since they were last seen.
    const before = seen === null ? null : Math.max(seen ?? 0, consumers.handledTo(partition) ?? 0)
    const position = (await queries.progress(partition))?.position ?? null
    this.positions.set(name, position)
    if (position !== null && position >= (before ?? 0)) return
    if (before !== null) onLost(partition)
    consumers.restart(partition)
  }
}
