import { Injectable } from '@nestjs/common'
import { endsInbox, INBOX_EVENTS } from '#libs/domain/inbox/events.js'
import type { ActiveInbox } from '#libs/domain/inbox/inbox.js'
import { bodyWithoutMail } from '#libs/mail/json/message-json.js'
import type { HistoryEntry } from '#libs/ports/read-model/views.js'
import { RequestBudgets, type MailRead } from '../http/budgets.js'
import { writeOffsetCursor } from '../http/list-pages.js'
import { Views } from '../views.js'
import { Instance } from '../instance.js'
import { eventText, type EndOfEvents } from './event-stream.js'
import { repeatFeed, RETRY_MS, sendEvent, type StreamClient } from './feed-loop.js'
import { ReceivedEvents } from './received-events.js'

/** A client that listens to the events of an inbox. */
export interface Listener extends StreamClient {
  inbox: ActiveInbox
  /** The first offset whose event is sent. */
  from: number
  /** The base of links. */
  inboxesPath: string
}

/** Entries of the history that are read at once. They are small, and their messages are opened one by one. */
const PAGE = 50
/** The maximum wait, after an inbox expires, for its end in the history. Then the stream ends without that event. */
const END_WITHIN_MS = 10_000

/** The events of an inbox, in the order of its history. */
@Injectable()
export class InboxFeed {
  constructor(
    private readonly views: Views,
    private readonly received: ReceivedEvents,
    private readonly instance: Instance,
    private readonly budgets: RequestBudgets,
  ) {}

  /**
   * Generates the text of a stream: each event once and in order. This holds even if the views are rebuilt in the
   * meantime, since `next` only increases.
   */
  chunks(listener: Listener, signal: AbortSignal): AsyncGenerator<string, EndOfEvents | undefined> {
    const { views, budgets } = this
    let { inbox, from: next } = listener
    let expiredAtMs: number | null = null
    const msLeft = () => this.msLeftOf(inbox)
    const textOf = (entry: HistoryEntry, read: MailRead) => this.textOf({ ...listener, inbox }, entry, read)
    const latest = () => this.latest(inbox)

    async function* read(): AsyncGenerator<string, 'more' | 'all' | 'inbox-ended'> {
      // Views that are being rebuilt may lack entries, but all are correct.
      const range = { order: 'asc', from: next, to: Number.MAX_SAFE_INTEGER, limit: PAGE } as const
      const entries = await views.inboxes.history({ inboxId: inbox.id, ...range })
      for (const entry of entries) {
        if (entry.type === 'InboxChanged' || msLeft() <= 0) inbox = await latest()
        yield* sendEvent(budgets, listener, signal, (read) => textOf(entry, read))
        if (signal.aborted) return 'all'
        next = entry.offset + 1
        if (endsInbox(entry.type)) return 'inbox-ended'
      }
      if (entries.length === PAGE) return 'more'
      if (msLeft() <= 0) inbox = await latest()
      return 'all'
    }

    function limitPause(ms: number): number | 'inbox-ended' {
      if (msLeft() > 0) {
        expiredAtMs = null
        return Math.min(ms, msLeft())
      }
      expiredAtMs ??= performance.now()
      return performance.now() >= expiredAtMs + END_WITHIN_MS ? 'inbox-ended' : Math.min(ms, RETRY_MS)
    }

    return repeatFeed({ read, limitPause }, listener, signal)
  }

  /** The inbox with its current expiry, which may have been moved. Throws ViewsCatchingUpError. */
  private async latest(inbox: ActiveInbox): Promise<ActiveInbox> {
    const row = await this.views.readComplete(inbox.id, () => this.views.inboxes.inbox(inbox.id))
    return row?.inbox.state === 'active' ? row.inbox : inbox
  }

  /** If it is 0 or less, the inbox has ended, even if its end is not in the history yet. */
  private msLeftOf({ expiresAt }: ActiveInbox): number {
    return expiresAt.getTime() - this.instance.now().getTime()
  }

  /** The event of an entry as text. Returns null and throws errors as `dataOf` does. */
  private async textOf(listener: Listener, entry: HistoryEntry, read: MailRead): Promise<string | null> {
    const data = await this.dataOf(listener, entry, read)
    if (data === null) return null
    const id = writeOffsetCursor(listener.inbox.id, { from: entry.offset + 1, to: null, end: null })
    return eventText({ id, event: INBOX_EVENTS[entry.type].publicName, data })
  }

  /**
   * The JSON of an entry. Null if clients get no event for it: its type is not streamed, the message is deleted, or the
   * inbox has ended, which has an event of its own later. Throws the errors of `bodyOf`.
   */
  private async dataOf(
    { inbox, inboxesPath }: Listener,
    { type, time, messageId }: HistoryEntry,
    read: MailRead,
  ): Promise<string | null> {
    const { publicName, sent } = INBOX_EVENTS[type]
    if (sent === null || (this.msLeftOf(inbox) <= 0 && !endsInbox(type))) return null
    if (sent.body !== 'message') {
      const ids = { inboxId: inbox.id, messageId }
      return bodyWithoutMail(sent.body, { type: publicName, ...ids, occurredAt: time })
    }
    if (messageId === null) return null
    return this.received.bodyOf(inbox, { id: messageId, time }, inboxesPath, read)
  }
}
