import { isUtf8 } from 'node:buffer'
import { StringDecoder } from 'node:string_decoder'
import { Injectable } from '@nestjs/common'
import { bodyContext, unsealJsonText, unsealMail, type SecretKey } from '#libs/ports/key-vault/content.js'
import type { ActiveInbox, Message, Inbox } from '#libs/domain/inbox/inbox.js'
import type { ParsedMail } from '#libs/mail/message.js'
import type { MessageRangeQuery } from '#libs/ports/read-model/queries.js'
import { isId, type InboxId, type MessageId } from '#libs/domain/ids/typeid.js'
import { type OpenedMessage, type MessageJson, messageJson } from '#libs/mail/json/message-json.js'
import { notFound, Problem } from '../http/problems.js'
import type { MailRead } from '../http/budgets.js'
import { Views } from '../http/views.js'
import { comingToItsEnd, hasEnded, type OpenInbox } from '../inboxes/inboxes.service.js'
import { OpenedMail, type WrittenPage } from './opened-mail.js'
import { readOffsetCursor } from '../http/list-pages.js'
import { type ListMessages, matches } from './message-filters.js'
import { LRUCache } from 'lru-cache'
import type { UsageRecorder } from '#libs/ports/usage/usage-recorder.js'

export type PresentMessage = Extract<Message, { state: 'present' }>

/** Rows at a time. */
const CHUNK = 50

/** What a parsed mail takes in memory, measured against its JSON, at most. */
const IN_MEMORY = 3

/** Opens the sealed messages of the views. */
@Injectable()
export class MessageReader {
  /** Messages being opened: concurrent readers share one opening. */
  private readonly opening = new Map<MessageId, Promise<OpenedMessage | null>>()

  constructor(
    private readonly views: Views,
    private readonly mail: OpenedMail,
  ) {}

  /**
   * Throws not-found or message-deleted if the inbox does not have the message, and catching-up while that is unknown:
   * views that are being rebuilt show a deleted message until they come to its deletion. Throws the inbox's 410 if it
   * has ended since it was opened.
   */
  async find({ id: inboxId }: ActiveInbox, id: string): Promise<PresentMessage> {
    if (!isId('msg', id)) throw noMessage(id)
    const row = await this.views.readComplete(inboxId, () =>
      this.views.inboxes.message({ inboxId, messageId: id }),
    )
    if (row === null) throw await this.whyMissing(inboxId, id)
    const { message } = row
    if (message.state === 'present') return message
    const deletedAt = message.deletedAt.toISOString()
    throw new Problem('message-deleted', {
      detail: `The message ${message.id} was deleted at ${deletedAt}.`,
      members: { deleted_at: deletedAt },
    })
  }

  /** Messages are deleted with their inbox: a missing one may have existed when the inbox was opened. */
  async whyMissing(inboxId: InboxId, id: string): Promise<Problem> {
    const row = await this.views.inboxes.inbox(inboxId)
    return row !== null && row.inbox.state !== 'active' ? hasEnded(row.inbox) : noMessage(id)
  }

  async keyOf(inboxId: InboxId): Promise<SecretKey> {
    const lookup = await this.views.vault.find(inboxId)
    if (lookup.state !== 'known') throw comingToItsEnd(inboxId)
    return lookup.key
  }

  /**
   * An inbox's messages with their offsets, one after the other, each as it is when it is read. Throws catching-up if the
   * inbox is being deleted, and what `read` throws.
   */
  async *opened(
    { id: inboxId }: ActiveInbox,
    { order, from, to }: Pick<MessageRangeQuery, 'order' | 'from' | 'to'>,
    read: MailRead,
  ): AsyncGenerator<{ offset: number; message: OpenedMessage }> {
    for (let range = { from, to }; ;) {
      const rows = await this.views.inboxes.listMessages({ inboxId, order, ...range, limit: CHUNK })
      const last = rows.at(-1)
      if (last === undefined) return
      const key = await this.keyOf(inboxId)
      for (const { message: row, offset } of rows) {
        await read.pace(row.state === 'present' ? row.size : 0)
        const message = row.state === 'present' ? await this.open(key, inboxId, row) : null
        if (message !== null) yield { offset, message }
        else if (await this.isStillThere(inboxId, row.id)) throw comingToItsEnd(inboxId)
      }
      if (rows.length < CHUNK) return
      range = order === 'asc' ? { from: last.offset + 1, to } : { from, to: last.offset }
    }
  }

  /** Null if the message has gone since its row was read: deleted, or with its inbox. */
  open(key: SecretKey, inboxId: InboxId, message: PresentMessage): Promise<OpenedMessage | null> {
    const { id } = message
    const remembered = this.mail.messages.get(inboxId, id)
    if (remembered !== null) return Promise.resolve(remembered)
    const underWay = this.opening.get(id)
    if (underWay !== undefined) return underWay
    const opening = this.openNow(key, inboxId, message).finally(() => this.opening.delete(id))
    this.opening.set(id, opening)
    return opening
  }

  private async openNow(
    key: SecretKey,
    inboxId: InboxId,
    { id, receivedAt }: PresentMessage,
  ): Promise<OpenedMessage | null> {
    const body = await this.views.inboxes.body({ inboxId, messageId: id })
    if (body === null) return null
    const json = unsealJsonText(key, bodyContext(inboxId, id), body)
    const mail = JSON.parse(json) as ParsedMail
    const opened = { id, inboxId, receivedAt, mail, bytes: Buffer.byteLength(json) }
    this.mail.messages.keep(inboxId, id, opened, IN_MEMORY * opened.bytes)
    return opened
  }

  /** When an inbox ends, content is deleted before the rows. */
  private async isStillThere(inboxId: InboxId, messageId: MessageId): Promise<boolean> {
    const row = await this.views.inboxes.message({ inboxId, messageId })
    return row?.message.state === 'present'
  }

  /** The source, byte for byte; null as with `open`. */
  async raw(key: SecretKey, inboxId: InboxId, messageId: MessageId): Promise<Buffer | null> {
    const sealed = await this.views.inboxes.raw({ inboxId, messageId })
    return sealed === null ? null : (await unsealMail(key, inboxId, messageId, sealed)).raw
  }

  /** Throws the problem of a message that was found, but has been deleted since. */
  async explainGone(inbox: ActiveInbox, id: MessageId): Promise<never> {
    await this.find(inbox, id)
    throw comingToItsEnd(inbox.id)
  }
}

export function noMessage(id: string): Problem {
  return notFound(`There is no message ${id.slice(0, 60)} in this inbox.`)
}

/** Bytes of a source that are encoded at once, a multiple of 3 for base64. Other requests run in between. */
const PIECE = 3 * 128 * 1024

/**
 * A message with its source as JSON in UTF-8. A source that is not valid UTF-8 is in base64. It is written piece by piece,
 * since a source of many megabytes takes long.
 */
export async function messageWithRaw(message: MessageJson, raw: Buffer): Promise<Buffer> {
  const encoding = isUtf8(raw) ? 'utf-8' : 'base64'
  const decoder = new StringDecoder(encoding)
  const pieces: Buffer[] = [Buffer.from(`${JSON.stringify(message).slice(0, -1)},"raw":"`)]
  for (let at = 0; at < raw.length; at += PIECE) {
    if (at > 0) await new Promise(setImmediate)
    pieces.push(inString(decoder.write(raw.subarray(at, at + PIECE))))
  }
  pieces.push(inString(decoder.end()), Buffer.from(`","raw_encoding":"${encoding}"}`))
  return Buffer.concat(pieces)
}

/** A JSON string without its quotation marks. */
function inString(text: string): Buffer {
  return Buffer.from(JSON.stringify(text).slice(1, -1))
}

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
    const cursor = query.cursor === undefined ? null : readOffsetCursor(inbox.id, query.cursor)
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
      await read.pace(message.bytes)
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
