import { IsIn, IsInt, IsOptional, IsString, Max, Min } from 'class-validator'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { isId, type Id } from '#libs/typeid/typeid.js'
import type { ListQuery } from '#libs/read-model/queries.js'
import { Says } from '../openapi/describe.js'
import { linkNext } from './link.js'
import { invalid } from './problems.js'
import { FromDigits } from './query-values.js'

/** The query of a list that goes by ids, newest first. */
export class ListPage {
  @Says('How many a page has at most.')
  @FromDigits()
  @Min(1, { message: 'limit must be at least 1' })
  @Max(100, { message: 'limit must be at most 100' })
  @IsInt({ message: 'limit must be a whole number' })
  limit: number = 25

  @Says('Oldest or newest first.')
  @IsIn(['asc', 'desc'], { message: 'order must be asc or desc' })
  order: 'asc' | 'desc' = 'desc'

  @Says('Where the list goes on: what `Link` has.')
  @IsOptional()
  @IsString({ message: 'cursor must come once' })
  cursor?: string
}

/**
 * One page of a list, with `Link` to the next one where there is more. A cursor is the id that the page goes on behind.
 * Throws invalid-request where the cursor is none.
 */
export async function pageOf<Prefix extends string, Item extends { id: Id<Prefix> }>(
  prefix: Prefix,
  { limit, order, cursor }: ListPage,
  { request, reply }: { request: FastifyRequest; reply: FastifyReply },
  look: (query: ListQuery<Id<Prefix>>) => Promise<Item[]>,
): Promise<Item[]> {
  const after = cursor === undefined ? null : Buffer.from(cursor, 'base64url').toString()
  if (after !== null && !isId(prefix, after)) {
    throw invalid({ detail: 'the cursor is not one that this list gave', parameter: 'cursor' })
  }
  const found = await look({ order, after, limit: limit + 1 })
  const page = found.slice(0, limit)
  const last = page.at(-1)
  if (found.length > limit && last !== undefined) {
    linkNext(request, reply, Buffer.from(last.id).toString('base64url'))
  }
  return page
}
