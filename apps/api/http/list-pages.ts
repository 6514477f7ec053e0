import { crc32 } from 'node:zlib'
import { applyDecorators } from '@nestjs/common'
import { IsIn, IsInt, IsOptional, IsString, Max, Min } from 'class-validator'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { isId, type Id, type InboxId, type LogId, type WebhookId } from '#libs/domain/ids/typeid.js'
import type { ListQuery, OffsetQuery } from '#libs/ports/read-model/lists.js'
import { DescribeProperty } from '../openapi/describe.js'
import { FromDigits, IfGiven, IsTime } from './rules.js'
import { invalid, type Location } from './problems.js'

export function IsLimit({ max }: { max: number }): PropertyDecorator {
  return applyDecorators(
    IsInt({ message: 'limit must be a whole number' }),
    Max(max, { message: `limit must be at most ${max}` }),
    Min(1, { message: 'limit must be at least 1' }),
    FromDigits(),
    DescribeProperty('The maximum number of items on a page.'),
  )
}

export function IsOrder(): PropertyDecorator {
  const isOrder = IsIn(['asc', 'desc'], { message: 'order must be asc or desc' })
  return applyDecorators(isOrder, DescribeProperty('Oldest or newest first.'))
}

export function IsCursor(description = 'The position to continue from, as in `Link`.'): PropertyDecorator {
  return applyDecorators(
    IsString({ message: 'cursor must be sent once' }),
    IsOptional(),
    DescribeProperty(description),
  )
}

/** An optional time that limits what is wanted. */
export function IsTimeLimit(description: string): PropertyDecorator {
  return applyDecorators(DescribeProperty(description), IfGiven(), IsTime())
}

/** The query of a list in the order of ids, newest first by default. */
export class ListPage {
  @IsLimit({ max: 100 })
  limit: number = 25

  @IsOrder()
  order: 'asc' | 'desc' = 'desc'

  @IsCursor()
  cursor?: string
}

/**
 * Reads one page of a list in the order of ids, and sets `Link` if there is a next page. A cursor is the id that the
 * page continues after. Throws invalid-request if the cursor is invalid.
 */
export async function pageOf<Prefix extends string, Item extends { id: Id<Prefix> }>(
  prefix: Prefix,
  { limit, order, cursor }: ListPage,
  reply: FastifyReply,
  read: (query: ListQuery<Id<Prefix>>) => Promise<Item[]>,
): Promise<Item[]> {
  const after = cursor === undefined ? null : Buffer.from(cursor, 'base64url').toString()
  if (after !== null && !isId(prefix, after)) {
    throw invalid({ detail: 'the cursor is not from this list', parameter: 'cursor' })
  }
  const found = await read({ order, after, limit: limit + 1 })
  return firstOf(found, limit, reply, ({ id }) => Buffer.from(id).toString('base64url'))
}

/**
 * Reads one page of an owner's entries in the order of the log, and sets `Link` if there is a next page. Throws
 * invalid-request if the cursor is not a cursor of this owner.
 */
export async function offsetPageOf<Row extends { offset: number }>(
  owner: Owner,
  { order, limit, cursor }: ListPage,
  reply: FastifyReply,
  read: (range: OffsetQuery) => Promise<Row[]>,
): Promise<Row[]> {
  const { from, to } = cursor === undefined ? { from: 0, to: null } : readOffsetCursor(owner, cursor)
  const found = await read({ order, from, to: to ?? Number.MAX_SAFE_INTEGER, limit: limit + 1 })
  return firstOf(found, limit, reply, ({ offset }) => {
    const next = order === 'asc' ? { from: offset + 1, to } : { from, to: offset }
    return writeOffsetCursor(owner, { ...next, end: null })
  })
}

/** Returns the first `limit` items. If there are more, sets `Link` to the cursor after the last one. */
function firstOf<Item>(
  found: readonly Item[],
  limit: number,
  reply: FastifyReply,
  cursorAfter: (last: Item) => string,
): Item[] {
  const page = found.slice(0, limit)
  const last = page.at(-1)
  if (found.length > limit && last !== undefined) setNextLink(reply, cursorAfter(last))
  return page
}

/** A request's path, even if its target has the absolute form (RFC 9112, section 3.2.2). */
export function pathOf({ url }: FastifyRequest): string {
  const [, path = ''] = /^(?:[a-z][a-z0-9+.-]*:\/\/[^/?]*)?([^?]*)/i.exec(url) ?? []
  return path
}

/**
 * Sets `Link` to the same list with another cursor (RFC 8288), under the path of the request. The other parameters stay,
 * so that every page has the same filters and order.
 */
export function setNextLink(reply: FastifyReply, cursor: string): void {
  const [, text = ''] = reply.request.url.split(/\?(.*)/s)
  const query = new URLSearchParams(text)
  query.set('cursor', cursor)
  // A time may mean a later state by then.
  const asOf = reply.getHeader('mayfly-as-of')
  if (asOf !== undefined) query.set('as_of', String(asOf))
  void reply.header('link', `<${pathOf(reply.request)}?${query.toString()}>; rel="next"`)
}

/**
 * The path under which a request reached an inbox, `/v1/inboxes` or its alias `/v1/emails`, for links in the answer.
 */
export function inboxesPathOf(request: FastifyRequest): string {
  return request.routeOptions.url?.startsWith('/v1/emails') === true ? '/v1/emails' : '/v1/inboxes'
}

type Owner = InboxId | LogId | WebhookId

/**
 * A position in the list of an inbox's messages, of a webhook's deliveries or of an audit log's events, as offsets. Clients get
 * it as an opaque text, with a checksum of the offsets and the owner.
 */
export interface OffsetCursor {
  from: number
  /** The offset to stop before; null for the end of the inbox. Only pages in descending order set it. */
  to: number | null
  /** The end of the inbox when the first page was read. */
  end: number | null
}

const OFFSET_BYTES = 6
const FIELDS = 3
const NONE = 2 ** (8 * OFFSET_BYTES) - 1
const LENGTH = FIELDS * OFFSET_BYTES + 4

export function writeOffsetCursor(owner: Owner, { from, to, end }: OffsetCursor): string {
  const bytes = Buffer.alloc(LENGTH)
  const fields = [from, to ?? NONE, end ?? NONE]
  for (const [index, field] of fields.entries()) bytes.writeUIntBE(field, index * OFFSET_BYTES, OFFSET_BYTES)
  bytes.writeUInt32BE(checksum(owner, bytes), LENGTH - 4)
  return bytes.toString('base64url')
}

/** Throws invalid-request with the location of the cursor if it is not a cursor of this owner. */
export function readOffsetCursor(
  owner: Owner,
  text: string,
  location: Location = { parameter: 'cursor' },
): OffsetCursor {
  const bytes = Buffer.from(text, 'base64url')
  const isComplete = bytes.length === LENGTH && bytes.toString('base64url') === text
  if (!isComplete || bytes.readUInt32BE(LENGTH - 4) !== checksum(owner, bytes)) {
    throw invalid({ detail: 'the cursor is not from this list', ...location })
  }
  const field = (index: number): number => bytes.readUIntBE(index * OFFSET_BYTES, OFFSET_BYTES)
  const optional = (index: number): number | null => (field(index) === NONE ? null : field(index))
  return { from: field(0), to: optional(1), end: optional(2) }
}

function checksum(owner: Owner, bytes: Buffer): number {
  return crc32(bytes.subarray(0, LENGTH - 4), crc32(owner))
}
