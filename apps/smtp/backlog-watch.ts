import type { LogLayout } from '#libs/ports/event-log/event-log.js'
import { measureBacklog, type Backlog } from '#libs/ports/read-model/backlog.js'
import type { InboxQueries } from '#libs/ports/read-model/queries.js'

const FRESH_MS = 250

/** How far the views are behind, measured for many mails at once. */
export class BacklogWatch {
  private last: { backlog: Backlog; measuredAtMs: number } | null = null
  private measuring: Promise<Backlog> | null = null

  constructor(
    private readonly log: LogLayout,
    private readonly queries: Pick<InboxQueries, 'progress'>,
  ) {}

  /** At most a quarter of a second old; null if it has to be measured. */
  recent(): Backlog | null {
    const { last } = this
    return last !== null && performance.now() - last.measuredAtMs < FRESH_MS ? last.backlog : null
  }

  /** Measured now; who asks meanwhile shares the answer. */
  measure(): Promise<Backlog> {
    this.measuring ??= this.measureOnce().finally(() => (this.measuring = null))
    return this.measuring
  }

  private async measureOnce(): Promise<Backlog> {
    const measuredAtMs = performance.now()
    const backlog = await measureBacklog(this.log, this.queries, 'inbox-events')
    this.last = { backlog, measuredAtMs }
    return backlog
  }
}
