import { Injectable } from '@nestjs/common'
import type { InboxId, MessageId } from '#libs/domain/ids/typeid.js'
import { INBOX_EVENTS, type InboxEvent } from '#libs/domain/inbox/events.js'
import { asOf } from '#libs/domain/inbox/inbox.js'
import { bodyWithoutMail } from '#libs/mail/json/message-json.js'
import type { MailOwner } from '#libs/ports/read-model/views.js'
import { RequestBudgets, type MailRead } from '../http/budgets.js'
import { Instance } from '../instance.js'
import { writeEnvironmentCursor } from '../messages/environment-cursor.js'
import { mergePartitions, type PartitionRead } from '../messages/partition-merge.js'
import { hasLabels, type Label } from '../inboxes/inbox-requests.dto.js'
import { Views } from '../views.js'
import { eventText, type EndOfEvents } from './event-stream.js'
import { repeatFeed, sendEvent, type StreamClient } from './feed-loop.js'
import { ReceivedEvents } from './received-events.js'

/** A client that listens to the events of an environment. */
export interface EnvironmentListener extends StreamClient {
  environment: string
  /** The labels that an inbox must have. */
  labels: readonly Label[]
  /** For each partition of inbox-events, the first offset whose event is sent. */
  from: readonly number[]
}

/** An event of an environment, without its content. */
interface Entry {
  offset: number
  time: Date
  type: InboxEvent['type']
  inboxId: InboxId
  messageId: MessageId | null
}

type PlacedEntry = Entry & { partition: number }

/** Entries that are read at once. They are small, and their messages are opened one by one. */
const PAGE = 100

/** The events of all inboxes of an environment, except protected ones. */
@Injectable()
export class EnvironmentFeed {
  constructor(
    private readonly views: Views,
    private readonly received: ReceivedEvents,
    private readonly instance: Instance,
    private readonly budgets: RequestBudgets,
  ) {}

  /**
   * Generates the text of a stream: each event once, those of an inbox in order. This holds even if the views are rebuilt
   * in the meantime: offsets only increase, and pass only what complete views have shown.
   */
  chunks(
    listener: EnvironmentListener,
    signal: AbortSignal,
  ): AsyncGenerator<string, EndOfEvents | undefined> {
    const { budgets } = this
    let next = listener.from
    const pageFrom = (from: readonly number[]) => this.pageFrom(listener, from)
    const textOf = (entry: PlacedEntry, after: readonly number[], read: MailRead) =>
      this.textOf(listener, entry, after, read)

    async function* read(): AsyncGenerator<string, 'more' | 'all'> {
      const page = await pageFrom(next)
      for (const entry of page.entries) {
        const after = next.with(entry.partition, entry.offset + 1)
        yield* sendEvent(budgets, listener, signal, (read) => textOf(entry, after, read))
        if (signal.aborted) return 'all'
        next = after
      }
      next = page.end ?? next
      return page.end === null ? 'more' : 'all'
    }

    return repeatFeed({ read }, listener, signal)
  }

  /**
   * At most PAGE entries, beginning at the given offsets, and the end of the range if there are no more. Throws
   * ViewsCatchingUpError.
   */
  private pageFrom(
    owner: MailOwner,
    from: readonly number[],
  ): Promise<{ entries: PlacedEntry[]; end: readonly number[] | null }> {
    return this.views.readComplete('inbox-events', async () => {
      const ends = await this.views.endOffsets()
      const to = from.map((offset, partition) => Math.max(offset, ends[partition] ?? 0))
      const entries: PlacedEntry[] = []
      const merged = mergePartitions({ order: 'asc', from, to }, (range) => this.entriesIn(owner, range))
      for await (const entry of merged) {
        if (entries.length === PAGE) return { entries, end: null }
        entries.push(entry)
      }
      return { entries, end: to }
    })
  }

  /** What arrived in a partition and still exists, and what ended there, in the order of the log. */
  private async entriesIn({ accountId, environment }: MailOwner, range: PartitionRead): Promise<Entry[]> {
    const query = { accountId, environment, ...range }
    const [messages, endings] = await Promise.all([
      this.views.inboxes.listEnvironmentMessages(query),
      this.views.inboxes.listEnvironmentEndings(query),
    ])
    const received = messages.map(({ receivedAt: time, ...ids }): Entry => {
      return { ...ids, time, type: 'MessageReceived' }
    })
    const ended = endings.map(({ inboxId, entry: { offset, type, time, messageId } }): Entry => {
      return { offset, type, time, inboxId, messageId }
    })
    return [...received, ...ended].sort((one, other) => one.offset - other.offset).slice(0, range.limit)
  }

  /** The event of an entry as text. Returns null and throws errors as `dataOf` does. */
  private async textOf(
    listener: EnvironmentListener,
    entry: PlacedEntry,
    after: readonly number[],
    read: MailRead,
  ): Promise<string | null> {
    const data = await this.dataOf(listener, entry, read)
    if (data === null) return null
    const id = writeEnvironmentCursor(listener, { from: after, range: null })
    return eventText({ id, event: INBOX_EVENTS[entry.type].publicName, data })
  }

  /**
   * The JSON of an entry. Null if clients get no event for it: its type is not streamed, the inbox lacks a label, the
   * message is deleted, or the inbox has ended, which has an event of its own later. Throws the errors of `find` and
   * `bodyOf`.
   */
  private async dataOf(
    { labels }: EnvironmentListener,
    { type, time, inboxId, messageId }: Entry,
    read: MailRead,
  ): Promise<string | null> {
    const row = await this.views.find(inboxId, () => this.views.inboxes.inbox(inboxId))
    const inbox = row === null ? null : asOf(row.inbox, this.instance.now())
    if (inbox === null || !hasLabels(inbox, labels)) return null
    const { publicName, sent } = INBOX_EVENTS[type]
    if (sent === null) return null
    if (sent.body !== 'message') {
      return bodyWithoutMail(sent.body, { type: publicName, inboxId, messageId, occurredAt: time })
    }
    if (messageId === null || inbox.state !== 'active') return null
    return this.received.bodyOf(inbox, { id: messageId, time }, '/v1/inboxes', read)
  }
}
