import { Injectable } from '@nestjs/common'
import type { MessageId } from '#libs/domain/ids/typeid.js'
import type { ActiveInbox } from '#libs/domain/inbox/inbox.js'
import { EVENT_NAMES, inboxEndBody, messageBody, messageDeletedBody } from '#libs/mail/json/message-json.js'
import type { HistoryEntry } from '#libs/ports/read-model/views.js'
import type { Doorbell } from '#libs/ports/signals/signals.js'
import { RequestBudgets, type MailRead } from '../http/budgets.js'
import { writeOffsetCursor } from '../http/list-pages.js'
import { isTransient, Problem } from '../http/problems.js'
import { Views } from '../views.js'
import { beingDeleted } from '../inboxes/inboxes.service.js'
import { Instance } from '../instance.js'
import { FirstReadings, MessageReader } from '../messages/message-reader.js'
import { OpenedMail } from '../messages/opened-mail.js'
import { COMMENT, eventText, RETRY, type EndOfEvents } from './event-stream.js'

/** A client that listens to the events of an inbox. */
export interface Listener {
  inbox: ActiveInbox
  /** The first offset whose event is sent. */
  from: number
  /** The base of links. */
  inboxesPath: string
  /** Rung when there may be new events. */
  bell: Doorbell
  /** Called before each event. Rejects with a Problem if the key is no longer valid, or can't be checked. */
  authenticate: () => Promise<void>
}

/** Entries of the history that are read at once. They are small, and their messages are opened one by one. */
const PAGE = 50
const COMMENT_EVERY_MS = 15_000
/** The history is read again after this time, since signals may be lost. A revoked key is noticed by then. */
const REREAD_MS = 5_000
/** The same if the views or the key can't be read, or the views are catching up. */
const RETRY_MS = 1_000
/** The maximum wait, after an inbox expires, for its end in the history. Then the stream ends without that event. */
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
   * Generates the text of a stream: each event once and in order. This holds even if the views are rebuilt in the
   * meantime, since `next` only increases. If something can't be read, it is retried.
   */
  async *chunks(listener: Listener, signal: AbortSignal): AsyncGenerator<string, EndOfEvents | undefined> {
    const { bell, authenticate } = listener
    let { inbox } = listener
    let next = listener.from
    let commentAtMs = performance.now() + COMMENT_EVERY_MS
    let expiredAtMs: number | null = null
    const isOver = () => signal.aborted

    yield RETRY
    while (!isOver()) {
      let waitMs = REREAD_MS
      try {
        await authenticate()
        const entries = await this.entriesFrom(inbox, next)
        for (const entry of entries) {
          await authenticate()
          if (entry.type === 'InboxChanged' || this.msLeftOf(inbox) <= 0) inbox = await this.latest(inbox)
          const current = { ...listener, inbox }
          const text = await this.budgets.readFor(inbox.accountId, signal, (read) =>
            this.textOf(current, entry, read),
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
        else if (this.msLeftOf(inbox) <= 0) inbox = await this.latest(inbox)
      } catch (error) {
        if (isOver()) return undefined
        if (error instanceof Problem && error.status < 500) return 'key-refused'
        if (!isTransient(error)) throw error
        waitMs = RETRY_MS
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
        waitMs = Math.min(waitMs, RETRY_MS)
      } else {
        expiredAtMs = null
        waitMs = Math.min(waitMs, leftMs)
      }
      if (waitMs > 0) await bell.wait(Math.min(waitMs, Math.max(0, commentAtMs - performance.now())))
    }
    return undefined
  }

  /**
   * At most PAGE entries, beginning at an offset. Views that are being rebuilt may lack entries, but all are correct.
   */
  private entriesFrom({ id: inboxId }: ActiveInbox, from: number): Promise<HistoryEntry[]> {
    const to = Number.MAX_SAFE_INTEGER
    return this.views.inboxes.history({ inboxId, order: 'asc', from, to, limit: PAGE })
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
    return eventText({ id, event: EVENT_NAMES[entry.type], data })
  }

  /**
   * The JSON of an entry. Null if clients get no event for it: the inbox was created or changed, the message is deleted,
   * or the inbox has ended, which has an event of its own later. Throws ViewsCatchingUpError if the views are not
   * complete, and the errors of `read`.
   */
  private async dataOf(
    { inbox, inboxesPath }: Listener,
    { type, time, messageId }: HistoryEntry,
    read: MailRead,
  ): Promise<string | null> {
    const { id: inboxId } = inbox
    if (type === 'InboxDeleted' || type === 'InboxExpired') {
      return inboxEndBody(EVENT_NAMES[type], time, inboxId)
    }
    if (messageId === null || this.msLeftOf(inbox) <= 0) return null
    if (type === 'MessageDeleted') return messageDeletedBody(time, { inboxId, messageId })
    // Views that are being rebuilt show a deleted message until they reach its deletion.
    return this.views.readComplete(inboxId, () => this.messageData(inbox, messageId, time, inboxesPath, read))
  }

  private async messageData(
    inbox: ActiveInbox,
    messageId: MessageId,
    time: Date,
    inboxesPath: string,
    read: MailRead,
  ): Promise<string | null> {
    // The cached JSON may be of a deleted message, so the row is read first.
    const { id: inboxId } = inbox
    const [row, lookup] = await Promise.all([
      this.views.inboxes.message({ inboxId, messageId }),
      this.views.vault.find(inboxId),
    ])
    if (row?.message.state !== 'present' || lookup.state === 'forgotten') return null
    if (lookup.state === 'unknown') throw beingDeleted(inboxId)
    const { message } = row
    const name = `${messageId} ${inboxesPath}`
    let json = this.opened.events.get(inboxId, name)
    if (json === null) {
      await read.pace(message.size)
      // Another stream may have opened it in the meantime.
      json = this.opened.events.get(inboxId, name)
    }
    if (json === null) {
      const opened = await this.reader.open(lookup.key, inboxId, message)
      if (opened === null) return null
      json = messageBody(time, opened, inboxesPath)
      this.opened.events.set(inboxId, name, json, 2 * json.length)
    }
    this.readings.note(inbox, [message])
    return json
  }
}
