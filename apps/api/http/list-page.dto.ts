import type { FastifyReply, FastifyRequest } from 'fastify'
import { isId, type Id } from '#libs/domain/ids/typeid.js'
import type { ListQuery } from '#libs/ports/read-model/queries.js'
import { linkNext } from './link.js'
import { IsCursor, IsLimit, IsOrder } from './list-parameters.js'
import { invalid } from './problems.js'

/** The query of a list that goes by ids, newest first. */
export class ListPage {
  @IsLimit({ most: 100 })
  limit: number = 25

  @IsOrder()
  order: 'asc' | 'desc' = 'desc'

  @IsCursor()
  cursor?: string
}

/**
 * One page of a list, with `Link` to the next one where there is more. A cursor is the id that the page goes on behind.
 * Throws invalid-request if the cursor is none.
 */
export async function pageOf<Prefix extends string, Item extends { id: Id<Prefix> }>(
  prefix: Prefix,
  { limit, order, cursor }: Pick<ListPage, 'limit' | 'order' | 'cursor'>,
  { request, reply }: { request: FastifyRequest; reply: FastifyReply },
  look: (query: ListQuery<Id<Prefix>>) => Promise<Item[]>,
): Promise<Item[]> {
  const after = cursor === undefined ? null : Buffer.from(cursor, 'base64url').toString()
  if (after !== null && !isId(prefix, after)) {
    throw invalid({ detail: 'the cursor is not from this list', parameter: 'cursor' })
  }
  const found = await look({ order, after, limit: limit + 1 })
  const page = found.slice(0, limit)
  const last = page.at(-1)
  if (found.length > limit && last !== undefined) {
    linkNext(request, reply, Buffer.from(last.id).toString('base64url'))
  }
  return page
}
