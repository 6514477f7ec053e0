import { Injectable } from '@nestjs/common'
import { messageJson, type OpenedMessage } from '#libs/mail/json/message-json.js'
import type { MailRead } from '../http/budgets.js'
import { readMessageCursor } from '../http/list-pages.js'
import type { OpenInbox } from '../inboxes/inboxes.service.js'
import { type ListMessages, matches } from './message-filters.js'
import { MessageReader } from './message-reader.js'
import { OpenedMail, type WrittenPage } from './opened-mail.js'
import { LRUCache } from 'lru-cache'
import type { Inbox } from '#libs/domain/inbox/inbox.js'
import type { MessageId } from '#libs/domain/ids/typeid.js'
import type { UsageRecorder } from '#libs/ports/usage/usage-recorder.js'

/** Records when a message was first in an answer of this process. */
export class FirstReadings {
  private readonly read = new LRUCache<MessageId, true>({ max: MAX_REMEMBERED })

  constructor(
    private readonly usage: Pick<UsageRecorder, 'record'>,
    private readonly now: () => Date,
  ) {}

  note(
    { id: inboxId, keyId, labels, accountId, environment }: Inbox,
    messages: readonly { id: MessageId; receivedAt: Date }[],
  ): void {
    for (const { id: messageId, receivedAt } of messages) {
      if (this.read.has(messageId)) continue
      this.read.set(messageId, true)
      const readAt = this.now()
      this.usage.record(
        { type: 'MessageRead', keyId, inboxId, messageId, receivedAt, labels, readAt },
        { accountId, environment },
      )
    }
  }
}

/** A page with more bytes than this ends early, but has at least one message. */
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
  async read(
    { inbox, endOffset }: OpenInbox,
    query: ListMessages,
    family: string,
    read: MailRead,
  ): Promise<WrittenPage> {
    const { order, limit } = query
    const cursor = query.cursor === undefined ? null : readMessageCursor(inbox.id, query.cursor)
    const from = cursor?.from ?? 0
    const to = cursor?.to ?? Math.max(endOffset, from)
    const end = cursor?.end ?? to
    const messages: OpenedMessage[] = []
    let bytes = 0
    /** Of the first message that belongs to the next page. */
    let nextOffset: number | null = null
    for await (const { offset, message } of this.reader.opened(inbox, { order, from, to }, read)) {
      if (!(await matches(message.mail, query))) continue
      if (messages.length === limit || (messages.length > 0 && bytes + message.bytes > PAGE_BYTES)) {
        nextOffset = offset
        break
      }
      messages.push(message)
      bytes += message.bytes
    }

    this.readings.note(inbox, messages)
    const items: string[] = []
    for (const message of messages) {
      await read.goOn(message.bytes)
      items.push(JSON.stringify(messageJson(message, family)))
    }
    const body = Buffer.from(`[${items.join(',')}]`)
    if (order === 'desc') {
      const next = nextOffset === null ? null : { from, to: nextOffset + 1, end }
      return { body, cursor: { from: end, to: null, end: null }, next }
    }
    const position = { from: nextOffset ?? to, to: null, end: null }
    return {
      body,
      cursor: position,
      next: nextOffset === null ? null : { ...position, to: cursor?.to ?? null },
    }
  }

  /** The same page, if it is still in memory. */
  recall({ inbox, endOffset }: OpenInbox, query: ListMessages, family: string): WrittenPage | null {
    return this.opened.pages.get(inbox.id, nameOf(endOffset, query, family))
  }

  /** Keeps a page that was read from complete views. */
  remember({ inbox, endOffset }: OpenInbox, query: ListMessages, family: string, page: WrittenPage): void {
    this.opened.pages.keep(inbox.id, nameOf(endOffset, query, family), page, page.body.length)
  }
}

/** Everything that determines a page. Each change of an inbox moves its end. */
function nameOf(endOffset: number, query: ListMessages, family: string): string {
  return JSON.stringify([endOffset, family, query])
}

/** A few megabytes of ids. If one is forgotten, its message is recorded again, but later readings do not count. */
const MAX_REMEMBERED = 50_000
