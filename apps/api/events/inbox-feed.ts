import { endsInbox } from '#libs/domain/inbox/events.js'
import type { ActiveInbox } from '#libs/domain/inbox/inbox.js'
import type { HistoryEntry } from '#libs/ports/read-model/views.js'
import { writeOffsetCursor } from '../http/list-pages.js'
import type { EventData } from './event-data.js'
import { RETRY_MS, type Feed } from './event-feed.js'

/** The maximum wait, after an inbox expires, for its end in the history. Then the stream ends without that event. */
const END_WITHIN_MS = 10_000

/**
 * The events of an inbox, in the order of its history: each once, even if the views are rebuilt in the meantime, since the
 * offset only increases.
 */
export class InboxFeed implements Feed<HistoryEntry> {
  /** Entries are small, and their messages are opened one by one. */
  readonly pageSize = 50
  private expiredAtMs: number | null = null

  /** Begins with the event at the offset `next`. `inboxesPath` is the base of links. */
  constructor(
    private readonly events: EventData,
    private inbox: ActiveInbox,
    private next: number,
    private readonly inboxesPath: string,
  ) {}

  async read(): Promise<HistoryEntry[]> {
    if (this.msLeft() <= 0) await this.update()
    // Views that are being rebuilt may lack entries, but all are correct.
    const { views, reads } = this.events
    const { id: inboxId } = this.inbox
    const range = {
      order: 'asc',
      from: this.next,
      to: Number.MAX_SAFE_INTEGER,
      limit: this.pageSize,
    } as const
    return reads.share(`${inboxId} ${this.next}`, () => views.inboxes.history({ inboxId, ...range }))
  }

  /** Null also if the inbox has ended, which has an event of its own later. */
  async dataOf(entry: HistoryEntry): Promise<string | null> {
    if (entry.type === 'InboxChanged' || this.msLeft() <= 0) await this.update()
    if (this.msLeft() <= 0 && !endsInbox(entry.type)) return null
    return this.events.dataOf(this.inbox, entry, this.inboxesPath)
  }

  cursorAfter({ offset }: HistoryEntry): string {
    return writeOffsetCursor(this.inbox.id, { from: offset + 1, to: null, end: null })
  }

  pass({ offset, type }: HistoryEntry): boolean {
    this.next = offset + 1
    return endsInbox(type)
  }

  limitPause(ms: number): number | 'inbox-ended' {
    const msLeft = this.msLeft()
    if (msLeft > 0) {
      this.expiredAtMs = null
      return Math.min(ms, msLeft)
    }
    this.expiredAtMs ??= performance.now()
    return performance.now() >= this.expiredAtMs + END_WITHIN_MS ? 'inbox-ended' : Math.min(ms, RETRY_MS)
  }

  /** If it is 0 or less, the inbox has ended, even if its end is not in the history yet. */
  private msLeft(): number {
    return this.inbox.expiresAt.getTime() - this.events.now().getTime()
  }

  /** Reads the expiry, which may have been moved. Throws ViewsCatchingUpError. */
  private async update(): Promise<void> {
    const { views } = this.events
    const { id } = this.inbox
    const row = await views.readComplete(id, () => views.inboxes.inbox(id))
    if (row?.inbox.state === 'active') this.inbox = row.inbox
  }
}
