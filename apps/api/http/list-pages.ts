import { applyDecorators } from '@nestjs/common'
import { IsIn, IsInt, IsOptional, IsString, Max, Min } from 'class-validator'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { isId, type Id, type InboxId, type WebhookId } from '#libs/domain/ids/typeid.js'
import type { ListQuery } from '#libs/ports/read-model/queries.js'
import { Says } from '../openapi/describe.js'
import { readMessageCursor, writeMessageCursor } from './cursor.js'
import { FromDigits } from './dto-values.js'
import { linkNext } from './link.js'
import { invalid } from './problems.js'

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

/** Which page of a list a request asks for. */
type PageQuery = Pick<ListPage, 'limit' | 'order' | 'cursor'>

/** Offsets from `from` up to, not including, `to`. */
interface OffsetRange {
  order: 'asc' | 'desc'
  from: number
  to: number
  limit: number
}

interface Exchange {
  request: FastifyRequest
  reply: FastifyReply
}

/**
 * One page of a list by ids, with `Link` to the next one if there is more. A cursor is the id that the page continues
 * after. Throws invalid-request if the cursor is not one.
 */
export async function pageOf<Prefix extends string, Item extends { id: Id<Prefix> }>(
  prefix: Prefix,
  { limit, order, cursor }: PageQuery,
  exchange: Exchange,
  look: (query: ListQuery<Id<Prefix>>) => Promise<Item[]>,
): Promise<Item[]> {
  const after = cursor === undefined ? null : Buffer.from(cursor, 'base64url').toString()
  if (after !== null && !isId(prefix, after)) {
    throw invalid({ detail: 'the cursor is not from this list', parameter: 'cursor' })
  }
  const found = await look({ order, after, limit: limit + 1 })
  return firstOf(found, limit, exchange, ({ id }) => Buffer.from(id).toString('base64url'))
}

/**
 * One page of an owner's entries in the order of the log, with `Link` to the next one if there is more. Throws
 * invalid-request if the cursor is not one of this owner.
 */
export async function offsetPageOf<Row extends { offset: number }>(
  owner: InboxId | WebhookId,
  { order, limit, cursor }: PageQuery,
  exchange: Exchange,
  look: (range: OffsetRange) => Promise<Row[]>,
): Promise<Row[]> {
  const { from, to } = cursor === undefined ? { from: 0, to: null } : readMessageCursor(owner, cursor)
  const found = await look({ order, from, to: to ?? Number.MAX_SAFE_INTEGER, limit: limit + 1 })
  return firstOf(found, limit, exchange, ({ offset }) => {
    const next = order === 'asc' ? { from: offset + 1, to } : { from, to: offset }
    return writeMessageCursor(owner, { ...next, end: null })
  })
}

/** The first items found; if there are more, `Link` has the cursor after the last of them. */
function firstOf<Item>(
  found: readonly Item[],
  limit: number,
  { request, reply }: Exchange,
  cursorAfter: (last: Item) => string,
): Item[] {
  const page = found.slice(0, limit)
  const last = page.at(-1)
  if (found.length > limit && last !== undefined) linkNext(request, reply, cursorAfter(last))
  return page
}
