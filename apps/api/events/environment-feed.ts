import type { InboxId } from '#libs/domain/ids/typeid.js'
import { asOf } from '#libs/domain/inbox/inbox.js'
import type { MailOwner } from '#libs/ports/read-model/views.js'
import type { MailRead } from '../http/budgets.js'
import { hasLabels, type Label } from '../inboxes/inbox-requests.dto.js'
import { writeEnvironmentCursor } from '../messages/environment-cursor.js'
import { mergePartitions, type PartitionRead } from '../messages/partition-merge.js'
import type { EventData } from './event-data.js'
import type { Feed, FeedEntry } from './event-feed.js'

interface Entry extends FeedEntry {
  inboxId: InboxId
}

type PlacedEntry = Entry & { partition: number }

/**
 * The events of all inboxes of an environment with some labels, except protected ones: each once, those of an inbox in
 * order. This holds even if the views are rebuilt in the meantime: offsets only increase, and pass only what complete
 * views have shown.
 */
export class EnvironmentFeed implements Feed<PlacedEntry> {
  /** Entries are small, and their messages are opened one by one. */
  readonly pageSize = 100

  /** `next` is the first offset of each partition of inbox-events whose event is sent. */
  constructor(
    private readonly events: EventData,
    private readonly owner: MailOwner,
    private readonly labels: readonly Label[],
    private next: readonly number[],
  ) {}

  /** Throws ViewsCatchingUpError. */
  read(): Promise<PlacedEntry[]> {
    const { views } = this.events
    return views.readComplete('inbox-events', async () => {
      const ends = await views.endOffsets()
      const to = this.next.map((offset, partition) => Math.max(offset, ends[partition] ?? 0))
      const range = { order: 'asc', from: this.next, to } as const
      const entries: PlacedEntry[] = []
      for await (const entry of mergePartitions(range, (part) => this.entriesIn(part))) {
        entries.push(entry)
        if (entries.length === this.pageSize) break
      }
      return entries
    })
  }

  /** Null also if the inbox lacks a label. Throws the errors of `find`, and those of `EventData`. */
  async dataOf(entry: PlacedEntry, read: MailRead): Promise<string | null> {
    const { views, now } = this.events
    const row = await views.find(entry.inboxId, () => views.inboxes.inbox(entry.inboxId))
    const inbox = row === null ? null : asOf(row.inbox, now())
    if (inbox === null || !hasLabels(inbox, this.labels)) return null
    return this.events.dataOf(inbox, entry, '/v1/inboxes', read)
  }

  cursorAfter(entry: PlacedEntry): string {
    return writeEnvironmentCursor(this.owner, { from: this.after(entry), range: null })
  }

  pass(entry: PlacedEntry): false {
    this.next = this.after(entry)
    return false
  }

  private after({ partition, offset }: PlacedEntry): readonly number[] {
    return this.next.with(partition, offset + 1)
  }

  /** Messages of a partition that still exist, and its other events, in the order of the log. */
  private async entriesIn(range: PartitionRead): Promise<Entry[]> {
    const { accountId, environment } = this.owner
    const { inboxes } = this.events.views
    const query = { accountId, environment, ...range }
    const [messages, events] = await Promise.all([
      inboxes.listEnvironmentMessages(query),
      inboxes.listEnvironmentEvents(query),
    ])
    const received = messages.map(({ receivedAt: time, ...ids }): Entry => {
      return { ...ids, time, type: 'MessageReceived' }
    })
    const others = events.map(({ inboxId, entry: { offset, type, time, messageId } }): Entry => {
      return { offset, type, time, inboxId, messageId }
    })
    return [...received, ...others].sort((one, other) => one.offset - other.offset).slice(0, range.limit)
  }
}
