import { Injectable } from '@nestjs/common'
import { messageJson, type OpenedMessage } from '#libs/mail/json/message-json.js'
import type { MailRead } from '../http/budgets.js'
import { readMessageCursor, type MessageCursor } from '../http/list-pages.js'
import type { OpenInbox } from '../inboxes/inboxes.service.js'
import type { ListMessages } from './list-messages.dto.js'
import { matches } from './match.js'
import { FirstReadings } from './first-readings.js'
import { MessageReader } from './message-reader.js'
import { OpenedMail, type WrittenPage } from './opened-mail.js'

interface MessagePage extends Pick<WrittenPage, 'cursor' | 'next'> {
  messages: OpenedMessage[]
}

/** A page ends early past it, with at least one message. */
const PAGE_BYTES = 8_000_000

/** Reads an inbox's messages page by page, in the order of the log. */
@Injectable()
export class MessagePages {
  constructor(
    private readonly reader: MessageReader,
    private readonly opened: OpenedMail,
    private readonly readings: FirstReadings,
  ) {}

  /**
   * `family` is the path that links begin with. Throws invalid-request for a cursor that is not the inbox's, and what
   * `read` throws.
   */
  async read(open: OpenInbox, query: ListMessages, family: string, read: MailRead): Promise<WrittenPage> {
    const { id } = open.inbox
    const cursor = query.cursor === undefined ? null : readMessageCursor(id, query.cursor)
    const { messages, ...places } = await this.collect(open, query, cursor, read)
    this.readings.note(open.inbox, messages)
    const items: string[] = []
    for (const message of messages) {
      await read.goOn(message.bytes)
      items.push(JSON.stringify(messageJson(message, family)))
    }
    return { ...places, body: Buffer.from(`[${items.join(',')}]`) }
  }

  /** The same page, where it was remembered; null if it must be read. */
  recall(open: OpenInbox, query: ListMessages, family: string): WrittenPage | null {
    return this.opened.pages.get(open.inbox.id, nameOf(open, query, family))
  }

  /** Of a page that was read of views that were whole. */
  remember(open: OpenInbox, query: ListMessages, family: string, page: WrittenPage): void {
    this.opened.pages.keep(open.inbox.id, nameOf(open, query, family), page, page.body.length)
  }

  private async collect(
    { inbox, endOffset }: OpenInbox,
    query: ListMessages,
    cursor: MessageCursor | null,
    read: MailRead,
  ): Promise<MessagePage> {
    const { order, limit } = query
    const from = cursor?.from ?? 0
    const to = cursor?.to ?? Math.max(endOffset, from)
    const end = cursor?.end ?? to
    const messages: OpenedMessage[] = []
    let bytes = 0
    for await (const { offset, message } of this.reader.opened(inbox, { order, from, to }, read)) {
      if (!(await matches(message.mail, query))) continue
      const isFull = messages.length === limit || (messages.length > 0 && bytes + message.bytes > PAGE_BYTES)
      if (isFull) return pageUpTo(offset)
      messages.push(message)
      bytes += message.bytes
    }
    return { messages, cursor: { from: order === 'asc' ? to : end, to: null, end: null }, next: null }

    /** A page that ends before a message which belongs to the next one. */
    function pageUpTo(offset: number): MessagePage {
      if (order === 'asc') {
        const place = { from: offset, to: null, end: null }
        return { messages, cursor: place, next: cursor?.to == null ? place : { ...place, to: cursor.to } }
      }
      return { messages, cursor: { from: end, to: null, end: null }, next: { from, to: offset + 1, end } }
    }
  }
}

/** All that a page follows from: whatever happens to an inbox moves its end. */
function nameOf({ endOffset }: OpenInbox, query: ListMessages, family: string): string {
  return JSON.stringify([endOffset, family, query])
}
