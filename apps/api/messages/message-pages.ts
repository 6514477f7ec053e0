import { setImmediate as nextTurn } from 'node:timers/promises'
import { isUtf8 } from 'node:buffer'
import { StringDecoder } from 'node:string_decoder'
import { Injectable } from '@nestjs/common'
import type { FastifyReply } from 'fastify'
import { callerOf } from '../access/principal.js'
import { RequestBudgets } from '../http/budgets.js'
import { setNextLink } from '../http/list-pages.js'
import { ContentPool } from './content-pool.js'
import { foundMessageJson, openExtractor, withMatches } from './extraction.js'
import type { MailSource } from './mail-source.js'
import { Matcher } from './matching.js'
import type { ListEnvironmentMessages, ListMessages } from './message-filters.js'
import { FirstReadings } from './message-reader.js'
import { matchesSearch, OWN, parseSearch } from './search.js'

/*
 * Writes messages as JSON: pages of a list, and a message with its source.
 */

/** A larger page ends early, but has at least one message. */
const PAGE_BYTES = 8_000_000

/** Lists messages page by page. */
@Injectable()
export class MessagePages {
  constructor(
    private readonly readings: FirstReadings,
    private readonly budgets: RequestBudgets,
    private readonly pool: ContentPool,
  ) {}

  /** Answers with a page, as a JSON array in UTF-8. Throws the errors of what it calls, such as invalid-request and busy. */
  async send(
    open: () => MailSource | Promise<MailSource>,
    query: ListMessages & Pick<ListEnvironmentMessages, 'q'>,
    reply: FastifyReply,
  ): Promise<Buffer> {
    const { request } = reply
    const { accountId, sessionId } = callerOf(request)
    return this.budgets.read(request, async (read) => {
      const source = await open()
      const matcher = new Matcher(query)
      const search = query.q === undefined ? null : parseSearch(query.q, OWN)
      const extractor = await openExtractor(this.pool, query.extract, accountId, read.signal)
      const items: string[] = []
      let bytes = 0
      const start = source.positionOf(query.cursor)
      const { position, next } = await source.scan(query, start, read, async ({ inbox, message }) => {
        if (!(await matcher.matches(message))) return 'continue'
        if (search !== null && !(await matchesSearch(search, { message, inbox }))) return 'continue'
        if (items.length === query.limit) return 'end-before'
        const found = await withMatches(message, extractor)
        if (items.length > 0 && bytes + found.bytes > PAGE_BYTES) return 'end-before'
        await read.pace(found.bytes)
        items.push(JSON.stringify(foundMessageJson(found, source.inboxesPath)))
        bytes += found.bytes
        // The console lists all mail as it arrives. Somebody reads it when it is opened.
        if (sessionId === null) this.readings.note(inbox, found)
        return 'continue'
      })
      const body = Buffer.from(`[${items.join(',')}]`)
      await this.budgets.holdAnswer(reply, body.length)
      void reply.header('mayfly-cursor', source.cursorOf(position)).type('application/json; charset=utf-8')
      if (next !== null) setNextLink(reply, source.cursorOf(next))
      return body
    })
  }
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
