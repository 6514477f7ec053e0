import { Injectable } from '@nestjs/common'
import { inboxEndBody, messageBody, messageDeletedBody } from '#libs/mail/json/event-body.js'
import { EVENT_NAMES } from '#libs/mail/json/event-names.js'
import type { OpenedMessage } from '#libs/mail/json/message-json.js'
import type { ActiveInbox } from '#libs/domain/inbox/inbox.js'
import type { HistoryEntry } from '#libs/ports/read-model/history.js'
import type { InboxId, MessageId } from '#libs/domain/ids/typeid.js'
import type { MailRead } from '../http/budgets.js'
import { writeMessageCursor } from '../http/cursor.js'
import { Views } from '../http/views.js'
import { InboxContext, comingToItsEnd } from '../inboxes/inboxes.service.js'
import { FirstReadings } from '../messages/first-readings.js'
import { MessageReader } from '../messages/message-reader.js'
import type { EventText } from './event-stream-text.js'

/** Entries of the history at a time: they are small, and what they stand for is opened one by one. */
export const PAGE = 50

/** What an inbox's stream tells, in the order of its history. */
@Injectable()
export class InboxFeed {
  /** The text of a message's event, by the path that its links begin with: written once for all streams. */
  private readonly texts = new WeakMap<OpenedMessage, Map<string, string>>()

  constructor(
    private readonly views: Views,
    private readonly reader: MessageReader,
    private readonly context: InboxContext,
    private readonly readings: FirstReadings,
  ) {}

  /** At most PAGE entries from an offset on. In views that are being rebuilt they are true too, if not all. */
  entriesFrom({ id: inboxId }: ActiveInbox, from: number): Promise<HistoryEntry[]> {
    const to = Number.MAX_SAFE_INTEGER
    return this.views.inboxes.history({ inboxId, order: 'asc', from, to, limit: PAGE })
  }

  /** Past it an inbox has ended, whether or not its end is in the history yet. */
  msLeftOf({ expiresAt }: ActiveInbox): number {
    return expiresAt.getTime() - this.context.now().getTime()
  }

  /**
   * The event of an entry of the history. Null if clients get none: the message is deleted, or the inbox has ended, and
   * the event of that follows. Throws catching-up if the views are not complete yet, and what `read` throws.
   */
  async tell(
    inbox: ActiveInbox,
    entry: HistoryEntry,
    family: string,
    read: MailRead,
  ): Promise<EventText | null> {
    const data = await this.dataOf(inbox, entry, family, read)
    const id = writeMessageCursor(inbox.id, { from: entry.offset + 1, to: null, end: null })
    return data === null ? null : { id, event: EVENT_NAMES[entry.type], data }
  }

  private async dataOf(
    inbox: ActiveInbox,
    entry: HistoryEntry,
    family: string,
    read: MailRead,
  ): Promise<string | null> {
    switch (entry.type) {
      case 'InboxDeleted':
      case 'InboxExpired':
        return inboxEndBody(EVENT_NAMES[entry.type], entry.time, inbox.id)
      case 'MessageDeleted':
        return this.msLeftOf(inbox) > 0
          ? messageDeletedBody(entry.time, { inboxId: inbox.id, messageId: entry.messageId })
          : null
      case 'MessageReceived':
        return this.msLeftOf(inbox) > 0 ? this.received(inbox, entry, family, read) : null
      case 'InboxCreated':
        return null
    }
  }

  private async received(
    inbox: ActiveInbox,
    entry: HistoryEntry,
    family: string,
    read: MailRead,
  ): Promise<string | null> {
    // Views that are being rebuilt show a deleted message until they come to its deletion: they must be whole all along.
    await this.views.mustKnow(inbox.id)
    const opened = entry.messageId === null ? null : await this.open(inbox.id, entry.messageId, read)
    await this.views.mustKnow(inbox.id)
    if (opened === null) return null
    this.readings.note(inbox, [opened])
    return this.textOf(entry.time, opened, family)
  }

  private textOf(time: Date, message: OpenedMessage, family: string): string {
    const texts = this.texts.get(message) ?? new Map<string, string>()
    const text = texts.get(family) ?? messageBody(time, message, family)
    this.texts.set(message, texts.set(family, text))
    return text
  }

  private async open(inboxId: InboxId, messageId: MessageId, read: MailRead): Promise<OpenedMessage | null> {
    // What was opened before may be remembered beyond its deletion: the row has the last word.
    const [row, lookup] = await Promise.all([
      this.views.inboxes.message({ inboxId, messageId }),
      this.views.vault.find(inboxId),
    ])
    if (row?.message.state !== 'present' || lookup.state === 'forgotten') return null
    if (lookup.state === 'unknown') throw comingToItsEnd(inboxId)
    await read.goOn(row.message.size)
    return this.reader.open(lookup.key, inboxId, row.message)
  }
}
