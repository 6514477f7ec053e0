import { crc32 } from 'node:zlib'
import { applyDecorators } from '@nestjs/common'
import { IsIn, IsInt, IsOptional, IsString, Max, Min } from 'class-validator'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { isId, type Id, type InboxId, type WebhookId } from '#libs/domain/ids/typeid.js'
import type { ListQuery } from '#libs/ports/read-model/queries.js'
import { Says } from '../openapi/describe.js'
import { FromDigits } from './contract-pipe.js'
import { invalid, type Place } from './problems.js'

/** `limit`: a whole number from 1. */
export function IsLimit({ most }: { most: number }): PropertyDecorator {
  return applyDecorators(
    IsInt({ message: 'limit must be a whole number' }),
    Max(most, { message: `limit must be at most ${most}` }),
    Min(1, { message: 'limit must be at least 1' }),
    FromDigits(),
    Says('How many a page has at most.'),
  )
}

/** `order`: asc or desc. */
export function IsOrder(): PropertyDecorator {
  const isOrder = IsIn(['asc', 'desc'], { message: 'order must be asc or desc' })
  return applyDecorators(isOrder, Says('Oldest or newest first.'))
}

/** `cursor`: text that an earlier answer gave. */
export function IsCursor(description = 'Where the list goes on: what `Link` has.'): PropertyDecorator {
  return applyDecorators(IsString({ message: 'cursor must come once' }), IsOptional(), Says(description))
}

/** The query of a list that goes by ids, newest first. */
export class ListPage {
  @IsLimit({ most: 100 })
  limit: number = 25

  @IsOrder()
  order: 'asc' | 'desc' = 'desc'

  @IsCursor()
  cursor?: string
}

/** Offsets from `from` up to, not including, `to`. */
interface OffsetRange {
  order: 'asc' | 'desc'
  from: number
  to: number
  limit: number
}

/**
 * One page of a list by ids, with `Link` to the next one if there is more. A cursor is the id that the page continues
 * after. Throws invalid-request if the cursor is not one.
 */
export async function pageOf<Prefix extends string, Item extends { id: Id<Prefix> }>(
  prefix: Prefix,
  { limit, order, cursor }: ListPage,
  reply: FastifyReply,
  look: (query: ListQuery<Id<Prefix>>) => Promise<Item[]>,
): Promise<Item[]> {
  const after = cursor === undefined ? null : Buffer.from(cursor, 'base64url').toString()
  if (after !== null && !isId(prefix, after)) {
    throw invalid({ detail: 'the cursor is not from this list', parameter: 'cursor' })
  }
  const found = await look({ order, after, limit: limit + 1 })
  return firstOf(found, limit, reply, ({ id }) => Buffer.from(id).toString('base64url'))
}

/**
 * One page of an owner's entries in the order of the log, with `Link` to the next one if there is more. Throws
 * invalid-request if the cursor is not one of this owner.
 */
export async function offsetPageOf<Row extends { offset: number }>(
  owner: Owner,
  { order, limit, cursor }: ListPage,
  reply: FastifyReply,
  look: (range: OffsetRange) => Promise<Row[]>,
): Promise<Row[]> {
  const { from, to } = cursor === undefined ? { from: 0, to: null } : readMessageCursor(owner, cursor)
  const found = await look({ order, from, to: to ?? Number.MAX_SAFE_INTEGER, limit: limit + 1 })
  return firstOf(found, limit, reply, ({ offset }) => {
    const next = order === 'asc' ? { from: offset + 1, to } : { from, to: offset }
    return writeMessageCursor(owner, { ...next, end: null })
  })
}

/** The first items found; if there are more, `Link` has the cursor after the last of them. */
function firstOf<Item>(
  found: readonly Item[],
  limit: number,
  reply: FastifyReply,
  cursorAfter: (last: Item) => string,
): Item[] {
  const page = found.slice(0, limit)
  const last = page.at(-1)
  if (found.length > limit && last !== undefined) linkNext(reply, cursorAfter(last))
  return page
}

/** A request's path, even if its target has the absolute form (RFC 9112, section 3.2.2). */
export function pathOf({ url }: FastifyRequest): string {
  return targetOf(url)[0]
}

/**
 * Sets `Link` to the same list with another cursor (RFC 8288), in the family of the request's path. The other
 * parameters stay as the client wrote them, so that every page is read in the same way.
 */
export function linkNext(reply: FastifyReply, cursor: string): void {
  const [path, query] = targetOf(reply.request.url)
  const others = query.split('&').filter((pair) => pair !== '' && !/^cursor(=|$)/.test(decoded(pair)))
  const target = `${path}?${[...others, `cursor=${cursor}`].join('&')}`
  void reply.header('link', `<${target.replaceAll(/[<>"\\^`{|}]/g, encodeURIComponent)}>; rel="next"`)
}

/** The family that a request came by, `/v1/inboxes` or `/v1/emails`: links in its answer stay in it. */
export function familyOf(request: FastifyRequest): string {
  return request.routeOptions.url?.startsWith('/v1/emails') === true ? '/v1/emails' : '/v1/inboxes'
}

function targetOf(url: string): [path: string, query: string] {
  const target = url.replace(/^[a-z][a-z0-9+.-]*:\/\/[^/?]*/i, '')
  const mark = target.indexOf('?')
  return mark < 0 ? [target, ''] : [target.slice(0, mark), target.slice(mark + 1)]
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

/** The owner of the list that a cursor belongs to. */
type Owner = InboxId | WebhookId

/**
 * A position among an inbox's messages, or a webhook's deliveries, as offsets of the partition. Clients get it as an
 * opaque text with a checksum over it and its owner.
 */
export interface MessageCursor {
  /** The first offset to read. */
  from: number
  /** The offset to stop before; null for the inbox's end. Only a descending page sets it. */
  to: number | null
  /** The inbox's end as the first page read it. */
  end: number | null
}

const OFFSET_BYTES = 6
const FIELDS = 3
const NONE = 2 ** (8 * OFFSET_BYTES) - 1
const LENGTH = FIELDS * OFFSET_BYTES + 4

export function writeMessageCursor(owner: Owner, { from, to, end }: MessageCursor): string {
  const bytes = Buffer.alloc(LENGTH)
  const fields = [from, to ?? NONE, end ?? NONE]
  for (const [index, field] of fields.entries()) bytes.writeUIntBE(field, index * OFFSET_BYTES, OFFSET_BYTES)
  bytes.writeUInt32BE(sumOf(owner, bytes), LENGTH - 4)
  return bytes.toString('base64url')
}

/** Throws invalid-request, naming the property or parameter, if the text is not a cursor of this owner. */
export function readMessageCursor(
  owner: Owner,
  text: string,
  place: Place = { parameter: 'cursor' },
): MessageCursor {
  const bytes = Buffer.from(text, 'base64url')
  const isWhole = bytes.length === LENGTH && bytes.toString('base64url') === text
  if (!isWhole || bytes.readUInt32BE(LENGTH - 4) !== sumOf(owner, bytes)) {
    throw invalid({ detail: 'the cursor is not from this list', ...place })
  }
  const field = (index: number): number => bytes.readUIntBE(index * OFFSET_BYTES, OFFSET_BYTES)
  const optional = (index: number): number | null => (field(index) === NONE ? null : field(index))
  return { from: field(0), to: optional(1), end: optional(2) }
}

function sumOf(owner: Owner, bytes: Buffer): number {
  return crc32(bytes.subarray(0, LENGTH - 4), crc32(owner))
}
