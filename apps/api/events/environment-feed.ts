import type { InboxId } from '#libs/domain/ids/typeid.js'
import { asOf } from '#libs/domain/inbox/inbox.js'
import type { MailOwner } from '#libs/ports/read-model/views.js'
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
  /** The last entry of a page after which there are no more now. Null after any other page. */
  private last: PlacedEntry | null = null
  /** The end of the partitions when the page was read. */
  private end: readonly number[] = []

  /** `next` is the first offset of each partition of inbox-events whose event is sent. */
  constructor(
    private readonly events: EventData,
    private readonly owner: MailOwner,
    private readonly labels: readonly Label[],
    private next: readonly number[],
  ) {}

  /** Throws ViewsCatchingUpError. */
  async read(): Promise<PlacedEntry[]> {
    const { accountId, environment } = this.owner
    const from = this.next
    const { entries, to } = await this.events.reads.share(
      `${accountId} ${environment} ${from.join(' ')}`,
      () => this.readFrom(from),
    )
    this.last = entries.length < this.pageSize ? (entries.at(-1) ?? null) : null
    this.end = to
    // Then all streams of the environment have the same position, and share their reads.
    if (entries.length === 0) this.next = to
    return entries
  }

  /** Null also if the inbox lacks a label. Throws the errors of `find`, and those of `EventData`. */
  async dataOf(entry: PlacedEntry): Promise<string | null> {
    const { views, now, reads } = this.events
    const { inboxId } = entry
    const row = await reads.share(inboxId, () => views.find(inboxId, () => views.inboxes.inbox(inboxId)))
    const inbox = row === null ? null : asOf(row.inbox, now())
    if (inbox === null || !hasLabels(inbox, this.labels)) return null
    return this.events.dataOf(inbox, entry, '/v1/inboxes')
  }

  cursorAfter(entry: PlacedEntry): string {
    return writeEnvironmentCursor(this.owner, { from: this.after(entry), range: null })
  }

  pass(entry: PlacedEntry): false {
    this.next = entry === this.last ? this.end : this.after(entry)
    return false
  }

  private readFrom(from: readonly number[]): Promise<{ entries: PlacedEntry[]; to: number[] }> {
    const { views } = this.events
    return views.readComplete('inbox-events', async () => {
      const ends = await views.endOffsets()
      const to = from.map((offset, partition) => Math.max(offset, ends[partition] ?? 0))
      const range = { order: 'asc', from, to } as const
      const entries: PlacedEntry[] = []
      for await (const entry of mergePartitions(range, (part) => this.entriesIn(part))) {
        entries.push(entry)
        if (entries.length === this.pageSize) break
      }
      return { entries, to }
    })
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
