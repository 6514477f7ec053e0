import type { FastifyReply, FastifyRequest } from 'fastify'
import type { InboxId, WebhookId } from '#libs/domain/ids/typeid.js'
import { readMessageCursor, writeMessageCursor } from './cursor.js'
import { linkNext } from './link.js'

interface OffsetPage {
  limit: number
  order: 'asc' | 'desc'
  cursor?: string
}

/** Offsets from `from` up to, not including, `to`. */
interface OffsetRange {
  order: 'asc' | 'desc'
  from: number
  to: number
  limit: number
}

/** Behind every offset. */
const END = Number.MAX_SAFE_INTEGER

/**
 * One page of what an owner has in the order of the log, with `Link` to the next one where there is more. Throws
 * invalid-request if the cursor is none of this owner's.
 */
export async function offsetPageOf<Row extends { offset: number }>(
  owner: InboxId | WebhookId,
  { order, limit, cursor }: OffsetPage,
  { request, reply }: { request: FastifyRequest; reply: FastifyReply },
  look: (range: OffsetRange) => Promise<Row[]>,
): Promise<Row[]> {
  const { from, to } = cursor === undefined ? { from: 0, to: null } : readMessageCursor(owner, cursor)
  const found = await look({ order, from, to: to ?? END, limit: limit + 1 })
  const page = found.slice(0, limit)
  const last = page.at(-1)
  if (found.length > limit && last !== undefined) {
    const next = order === 'asc' ? { from: last.offset + 1, to } : { from, to: last.offset }
    linkNext(request, reply, writeMessageCursor(owner, { ...next, end: null }))
  }
  return page
}
