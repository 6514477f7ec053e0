import { Injectable } from '@nestjs/common'
import { inboxEndBody, messageBody, messageDeletedBody, EVENT_NAMES } from '#libs/mail/json/message-json.js'
import type { ActiveInbox } from '#libs/domain/inbox/inbox.js'
import type { MessageId } from '#libs/domain/ids/typeid.js'
import type { HistoryEntry } from '#libs/ports/read-model/views.js'
import type { Doorbell } from '#libs/ports/signals/signals.js'
import { type MailRead, RequestBudgets } from '../http/budgets.js'
import { writeOffsetCursor } from '../http/list-pages.js'
import { isTransient, Problem } from '../http/problems.js'
import { Views } from '../http/views.js'
import { Instance } from '../instance.js'
import { comingToItsEnd } from '../inboxes/inboxes.service.js'
import { MessageReader, FirstReadings } from '../messages/message-reader.js'
import { OpenedMail } from '../messages/opened-mail.js'

/** Why a stream is over: its inbox has ended, or its key may no longer read it. */
export type EndOfEvents = 'inbox-ended' | 'key-refused'

/** What a stream sends, and to whom. */
export interface Listening {
  inbox: ActiveInbox
  /** The first offset whose event is sent. */
  from: number
  /** The path that links begin with. */
  family: string
  /** Rung when there may be something new. */
  bell: Doorbell
  /** Called before each event. Rejects with a Problem if the key is no longer valid, or can't be checked. */
  authenticate: () => Promise<void>
}

/** Entries of the history at a time: they are small, and the messages that they name are opened one by one. */
const PAGE = 50
const COMMENT_EVERY_MS = 15_000
/** Signals may be lost; a key that is revoked is noticed by then. */
const LOOK_EVERY_MS = 5_000
/** While the views or the key can't be read, or the views are catching up. */
const LOOK_AGAIN_MS = 1_000
/** The longest wait, after an inbox expires, for its end in the history. Then the stream ends without it. */
const END_WITHIN_MS = 10_000

/** The events of an inbox, in the order of its history. */
@Injectable()
export class InboxFeed {
  constructor(
    private readonly views: Views,
    private readonly reader: MessageReader,
    private readonly opened: OpenedMail,
    private readonly instance: Instance,
    private readonly readings: FirstReadings,
    private readonly budgets: RequestBudgets,
  ) {}

  /**
   * The text of a stream, chunk by chunk as it is asked for: each event once and in order, even if the views are rebuilt
   * meanwhile, since `next` only moves forward through the log's offsets. It waits for what can't be read at the moment.
   */
  async *chunks(listening: Listening, signal: AbortSignal): AsyncGenerator<string, EndOfEvents | undefined> {
    const { inbox, bell, authenticate } = listening
    let next = listening.from
    let commentAtMs = performance.now() + COMMENT_EVERY_MS
    let expiredAtMs: number | null = null
    const isOver = () => signal.aborted

    yield RETRY
    while (!isOver()) {
      let waitMs = LOOK_EVERY_MS
      try {
        await authenticate()
        const entries = await this.entriesFrom(inbox, next)
        for (const entry of entries) {
          await authenticate()
          const text = await this.budgets.readFor(inbox.accountId, signal, (read) =>
            this.textOf(listening, entry, read),
          )
          if (isOver()) return undefined
          if (text !== null) {
            const release = await this.budgets.holdEvent(inbox.accountId, Buffer.byteLength(text), signal)
            try {
              yield text
            } finally {
              release()
            }
          }
          next = entry.offset + 1
          if (entry.type === 'InboxDeleted' || entry.type === 'InboxExpired') return 'inbox-ended'
        }
        if (entries.length === PAGE) waitMs = 0
      } catch (error) {
        if (isOver()) return undefined
        if (error instanceof Problem && error.status < 500) return 'key-refused'
        if (!isTransient(error)) throw error
        waitMs = LOOK_AGAIN_MS
      }
      const nowMs = performance.now()
      if (nowMs >= commentAtMs) {
        yield COMMENT
        commentAtMs += COMMENT_EVERY_MS * Math.ceil((nowMs - commentAtMs + 1) / COMMENT_EVERY_MS)
      }
      const leftMs = this.msLeftOf(inbox)
      if (leftMs <= 0) {
        expiredAtMs ??= nowMs
        if (nowMs >= expiredAtMs + END_WITHIN_MS) return 'inbox-ended'
        waitMs = Math.min(waitMs, LOOK_AGAIN_MS)
      } else {
        waitMs = Math.min(waitMs, leftMs)
      }
      if (waitMs > 0) await bell.wait(Math.min(waitMs, Math.max(0, commentAtMs - performance.now())))
    }
    return undefined
  }

  /** At most PAGE entries from an offset on. Views that are being rebuilt may lack some, but show no false ones. */
  private entriesFrom({ id: inboxId }: ActiveInbox, from: number): Promise<HistoryEntry[]> {
    const to = Number.MAX_SAFE_INTEGER
    return this.views.inboxes.history({ inboxId, order: 'asc', from, to, limit: PAGE })
  }

  /** At 0 or below, the inbox has ended, whether or not its end is in the history yet. */
  private msLeftOf({ expiresAt }: ActiveInbox): number {
    return expiresAt.getTime() - this.instance.now().getTime()
  }

  /** The event of an entry as text. Null, and errors, as with `dataOf`. */
  private async textOf(listening: Listening, entry: HistoryEntry, read: MailRead): Promise<string | null> {
    const data = await this.dataOf(listening, entry, read)
    if (data === null) return null
    const id = writeOffsetCursor(listening.inbox.id, { from: entry.offset + 1, to: null, end: null })
    return eventText({ id, event: EVENT_NAMES[entry.type], data })
  }

  /**
   * The JSON of an entry. Null if clients get no event for it: the message is deleted, or the inbox has ended, whose
   * event follows. Throws catching-up if the views are not complete yet, and what `read` throws.
   */
  private async dataOf(
    { inbox, family }: Listening,
    { type, time, messageId }: HistoryEntry,
    read: MailRead,
  ): Promise<string | null> {
    const { id: inboxId } = inbox
    if (type === 'InboxDeleted' || type === 'InboxExpired') {
      return inboxEndBody(EVENT_NAMES[type], time, inboxId)
    }
    if (messageId === null || this.msLeftOf(inbox) <= 0) return null
    if (type === 'MessageDeleted') return messageDeletedBody(time, { inboxId, messageId })
    // Views that are being rebuilt show a deleted message until they come to its deletion.
    return this.views.readComplete(inboxId, () => this.messageData(inbox, messageId, time, family, read))
  }

  private async messageData(
    inbox: ActiveInbox,
    messageId: MessageId,
    time: Date,
    family: string,
    read: MailRead,
  ): Promise<string | null> {
    // The JSON may be remembered beyond the message's deletion: the row decides.
    const { id: inboxId } = inbox
    const [row, lookup] = await Promise.all([
      this.views.inboxes.message({ inboxId, messageId }),
      this.views.vault.find(inboxId),
    ])
    if (row?.message.state !== 'present' || lookup.state === 'forgotten') return null
    if (lookup.state === 'unknown') throw comingToItsEnd(inboxId)
    const { message } = row
    const name = `${messageId} ${family}`
    let json = this.opened.events.get(inboxId, name)
    if (json === null) {
      await read.pace(message.size)
      // Another stream may have had its turn first.
      json = this.opened.events.get(inboxId, name)
    }
    if (json === null) {
      const opened = await this.reader.open(lookup.key, inboxId, message)
      if (opened === null) return null
      json = messageBody(time, opened, family)
      this.opened.events.keep(inboxId, name, json, 2 * json.length)
    }
    this.readings.note(inbox, [message])
    return json
  }
}

/*
 * Server-sent events as the HTML standard has them (section 9.2, "Server-sent events"): an event is a run of lines
 * that an empty one ends, and a line that begins with a colon is a comment.
 */

export const MEDIA_TYPE = 'text/event-stream'

/** After so many milliseconds a client whose stream has ended connects again. */
export const RETRY = 'retry: 2000\n\n'

/** Shows clients and proxies that the connection is still open. */
const COMMENT = ':\n\n'

/** `id` is what a client sends back as `Last-Event-ID`. No part may contain a line break. */
export function eventText({ id, event, data }: { id: string; event: string; data: string }): string {
  return `id: ${id}\nevent: ${event}\ndata: ${data}\n\n`
}
