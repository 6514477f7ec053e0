import type { Partition, PartitionRange, Position } from '#libs/ports/event-log/event-log.js'
import { Doorbell } from '#libs/ports/signals/doorbell.js'
import type { Signals } from '#libs/ports/signals/signals.js'
import { ReadModelUnavailableError, type InboxQueries } from './queries.js'

/** Signalled when a partition's views have moved. */
export function movedChannel({ topic, partition }: Partition): string {
  return `moved:${topic}:${partition}`
}

const RELOOK_MS = 500

/** Lets who appended wait until the views show it: read-your-writes. */
export class Watermark {
  constructor(
    private readonly queries: Pick<InboxQueries, 'progress'>,
    private readonly signals: Signals,
  ) {}

  /** Resolves with whether the views came past a position within the time given. */
  async hasPassed(position: Position, withinMs: number): Promise<boolean> {
    if (await this.isPast(position)) return true
    const deadlineMs = performance.now() + withinMs
    const bell = new Doorbell()
    const unsubscribe = await this.signals.subscribe(movedChannel(position), () => bell.ring())
    try {
      // The views may have moved between the look and the subscription: each turn begins with a look.
      while (!(await this.isPast(position))) {
        const leftMs = deadlineMs - performance.now()
        if (leftMs <= 0) return false
        await bell.wait(Math.min(leftMs, RELOOK_MS))
      }
      return true
    } finally {
      unsubscribe()
    }
  }

  /** Rejects with ReadModelUnavailableError where the views did not come past a position within the time given. */
  async mustHavePassed(position: Position, withinMs: number): Promise<void> {
    if (await this.hasPassed(position, withinMs)) return
    const { topic, partition, offset } = position
    throw new ReadModelUnavailableError(`the views do not show ${topic}/${partition}/${offset} yet`)
  }

  /** As `mustHavePassed`, for all that these ranges hold. */
  async mustHavePassedAll(ranges: readonly PartitionRange[], withinMs: number): Promise<void> {
    const held = ranges.filter(({ end }) => end > 0)
    await Promise.all(
      held.map(({ topic, partition, end }) =>
        this.mustHavePassed({ topic, partition, offset: end - 1 }, withinMs),
      ),
    )
  }

  private async isPast(position: Position): Promise<boolean> {
    const progress = await this.queries.progress(position)
    return progress !== null && progress.position > position.offset
  }
}
