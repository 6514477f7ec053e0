import { setImmediate as nextTurn } from 'node:timers/promises'
import { isUtf8 } from 'node:buffer'
import { StringDecoder } from 'node:string_decoder'
import { Injectable } from '@nestjs/common'
import type { OpenedMessage } from '#libs/mail/json/message-json.js'
import type { MailRead } from '../http/budgets.js'
import { type OffsetCursor, readOffsetCursor } from '../http/list-pages.js'
import type { OpenInbox } from '../inboxes/inboxes.service.js'
import { ContentPool } from './content-pool.js'
import { Extractor, foundMessageJson, type FoundMessage } from './extraction.js'
import { Matcher } from './matching.js'
import type { ListMessages } from './message-filters.js'
import { FirstReadings, MessageReader } from './message-reader.js'

/*
 * Writes messages as JSON: pages of a list, and a message with its source.
 */

/** A larger page ends early, but has at least one message. */
const PAGE_BYTES = 8_000_000

/** A page of an inbox's messages, as it is sent. */
export interface WrittenPage {
  /** A JSON array in UTF-8. */
  body: Buffer
  /** The position after the page. */
  cursor: OffsetCursor
  /** The position of the next page; null if there is none. */
  next: OffsetCursor | null
}

/** The messages of a page. */
export class PageMessages {
  readonly messages: FoundMessage[] = []
  private bytes = 0

  constructor(private readonly limit: number) {}

  /** Adds a message, with what the extractor finds in it. Returns false if the page is full. Throws as `Extractor.find`. */
  async add(message: OpenedMessage, extractor: Extractor | null, signal: AbortSignal): Promise<boolean> {
    const { messages } = this
    if (messages.length === this.limit) return false
    const added = extractor === null ? message : await extractor.find(message, signal)
    if (messages.length > 0 && this.bytes + added.bytes > PAGE_BYTES) return false
    messages.push(added)
    this.bytes += added.bytes
    return true
  }
}

/** Reads an inbox's messages page by page, in the order of the log. */
@Injectable()
export class MessagePages {
  constructor(
    private readonly reader: MessageReader,
    private readonly readings: FirstReadings,
    private readonly pool: ContentPool,
  ) {}

  /**
   * `inboxesPath` is the base of links. Throws invalid-request for a cursor of another inbox, and the errors of `read`.
   */
  async read(
    { inbox, endOffset }: OpenInbox,
    query: ListMessages,
    inboxesPath: string,
    read: MailRead,
  ): Promise<WrittenPage> {
    const { order, limit } = query
    const cursor = query.cursor === undefined ? null : readOffsetCursor(inbox.id, query.cursor)
    const from = cursor?.from ?? 0
    const to = cursor?.to ?? Math.max(endOffset, from)
    const end = cursor?.end ?? to
    const page = new PageMessages(limit)
    const matcher = new Matcher(query)
    const extractor = await Extractor.open(this.pool, query.extract, inbox.accountId, read.signal)
    /** The offset of the first message on the next page. */
    let nextOffset: number | null = null
    for await (const { offset, message } of this.reader.opened(inbox, { order, from, to }, read)) {
      if (!(await matcher.matches(message))) continue
      if (await page.add(message, extractor, read.signal)) continue
      nextOffset = offset
      break
    }

    this.readings.note(inbox, page.messages)
    const body = await messagesAsJson(page.messages, inboxesPath, read)
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
}

/** An array of messages as JSON in UTF-8. */
export async function messagesAsJson(
  messages: readonly FoundMessage[],
  inboxesPath: string,
  read: MailRead,
): Promise<Buffer> {
  const items: string[] = []
  for (const message of messages) {
    await read.pace(message.bytes)
    items.push(JSON.stringify(foundMessageJson(message, inboxesPath)))
  }
  return Buffer.from(`[${items.join(',')}]`)
}

/** Bytes of a source that are encoded at once, before other requests run. A multiple of 3 for base64. */
const PIECE = 3 * 128 * 1024

/**
 * Writes a message with its source as JSON in UTF-8; in base64 if the source is not valid UTF-8. It is written in
 * pieces, since a source of many megabytes takes long.
 */
export async function messageWithRaw(message: object, raw: Buffer): Promise<Buffer> {
  const encoding = isUtf8(raw) ? 'utf-8' : 'base64'
  const decoder = new StringDecoder(encoding)
  const pieces: Buffer[] = [Buffer.from(`${JSON.stringify(message).slice(0, -1)},"raw":"`)]
  for (let at = 0; at < raw.length; at += PIECE) {
    if (at > 0) await nextTurn()
    pieces.push(jsonStringBody(decoder.write(raw.subarray(at, at + PIECE))))
  }
  pieces.push(jsonStringBody(decoder.end()), Buffer.from(`","raw_encoding":"${encoding}"}`))
  return Buffer.concat(pieces)
}

/** Text as a JSON string without its quotation marks. */
function jsonStringBody(text: string): Buffer {
  return Buffer.from(JSON.stringify(text).slice(1, -1))
}
