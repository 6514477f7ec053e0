import { Injectable } from '@nestjs/common'
import { inboxEndBody, messageBody, messageDeletedBody, EVENT_NAMES } from '#libs/mail/json/event-body.js'
import type { ActiveInbox } from '#libs/domain/inbox/inbox.js'
import type { HistoryEntry } from '#libs/ports/read-model/history.js'
import type { MessageId } from '#libs/domain/ids/typeid.js'
import type { MailRead } from '../http/budgets.js'
import { writeMessageCursor } from '../http/list-pages.js'
import { Views } from '../http/views.js'
import { Instance } from '../instance.js'
import { comingToItsEnd } from '../inboxes/inboxes.service.js'
import { FirstReadings } from '../messages/first-readings.js'
import { MessageReader } from '../messages/message-reader.js'
import { OpenedMail } from '../messages/opened-mail.js'

/** Entries of the history at a time: they are small, and what they stand for is opened one by one. */
export const PAGE = 50

/** What an inbox's stream tells, in the order of its history. */
@Injectable()
export class InboxFeed {
  constructor(
    private readonly views: Views,
    private readonly reader: MessageReader,
    private readonly opened: OpenedMail,
    private readonly instance: Instance,
    private readonly readings: FirstReadings,
  ) {}

  /** At most PAGE entries from an offset on. In views that are being rebuilt they are true too, if not all. */
  entriesFrom({ id: inboxId }: ActiveInbox, from: number): Promise<HistoryEntry[]> {
    const to = Number.MAX_SAFE_INTEGER
    return this.views.inboxes.history({ inboxId, order: 'asc', from, to, limit: PAGE })
  }

  /** Past it an inbox has ended, whether or not its end is in the history yet. */
  msLeftOf({ expiresAt }: ActiveInbox): number {
    return expiresAt.getTime() - this.instance.now().getTime()
  }

  /**
   * The event of an entry of the history. Null if clients get none: the message is deleted, or the inbox has ended, and
   * the event of that follows. Throws catching-up if the views are not complete yet, and what `read` throws.
   */
  async eventOf(
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
    { time, messageId }: HistoryEntry,
    family: string,
    read: MailRead,
  ): Promise<string | null> {
    // Views that are being rebuilt show a deleted message until they come to its deletion.
    if (messageId === null) return null
    return this.views.readComplete(inbox.id, () => this.textOf(inbox, messageId, time, family, read))
  }

  private async textOf(
    inbox: ActiveInbox,
    messageId: MessageId,
    time: Date,
    family: string,
    read: MailRead,
  ): Promise<string | null> {
    // A text may be remembered beyond the message's deletion: the row has the last word.
    const { id: inboxId } = inbox
    const [row, lookup] = await Promise.all([
      this.views.inboxes.message({ inboxId, messageId }),
      this.views.vault.find(inboxId),
    ])
    if (row?.message.state !== 'present' || lookup.state === 'forgotten') return null
    if (lookup.state === 'unknown') throw comingToItsEnd(inboxId)
    const { message } = row
    const name = `${messageId} ${family}`
    let text = this.opened.events.get(inboxId, name)
    if (text === null) {
      await read.goOn(message.size)
      // Another stream may have had its turn first.
      text = this.opened.events.get(inboxId, name)
    }
    if (text === null) {
      const opened = await this.reader.open(lookup.key, inboxId, message)
      if (opened === null) return null
      text = messageBody(time, opened, family)
      this.opened.events.keep(inboxId, name, text, 2 * text.length)
    }
    this.readings.note(inbox, [message])
    return text
  }
}

/*
 * Server-sent events as the HTML standard has them (section 9.2, "Server-sent events"): an event is a run of lines
 * that an empty one ends, and a line that begins with a colon is a comment.
 */

export const MEDIA_TYPE = 'text/event-stream'

/** After so many milliseconds a client whose stream has ended comes again. */
export const RETRY = 'retry: 2000\n\n'

/** Shows a client, and what lies between, that the stream is still there. */
export const COMMENT = ':\n\n'

export interface EventText {
  /** What a client gives back as `Last-Event-ID`; of one line, as the name and the data are. */
  id: string
  event: string
  data: string
}

export function eventText({ id, event, data }: EventText): string {
  return `id: ${id}\nevent: ${event}\ndata: ${data}\n\n`
}
