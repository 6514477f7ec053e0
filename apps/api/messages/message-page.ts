import { Injectable } from '@nestjs/common'
import type { MessageCursor } from '../http/cursor.js'
import type { OpenInbox } from '../inboxes/inboxes.service.js'
import type { ListMessages } from './list-messages.dto.js'
import { matches } from './match.js'
import type { OpenedMessage } from './message-json.js'
import { MessageReader } from './message-reader.js'

export interface MessagePage {
  messages: OpenedMessage[]
  /** Where the client has read to: given back, it yields exactly what came after. */
  cursor: MessageCursor
  /** Where the list goes on; null where there is no more now. */
  next: MessageCursor | null
}

/** A page ends early past it, with at least one message. */
const PAGE_BYTES = 8_000_000

/** Reads an inbox's messages page by page, in the order of the log. */
@Injectable()
export class MessagePages {
  constructor(private readonly reader: MessageReader) {}

  async read(
    { inbox, endOffset }: OpenInbox,
    query: ListMessages,
    cursor: MessageCursor | null,
  ): Promise<MessagePage> {
    const { order, limit } = query
    const from = cursor?.from ?? 0
    const to = cursor?.to ?? Math.max(endOffset, from)
    const end = cursor?.end ?? to
    const messages: OpenedMessage[] = []
    let bytes = 0
    for await (const { offset, message } of this.reader.opened(inbox, { order, from, to })) {
      if (!matches(message.mail, query)) continue
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
