import type { MessageId } from '#libs/domain/ids/typeid.js'

/** A message that was looked at and did not match. */
export interface NearMiss {
  id: MessageId
  subject: string | null
  receivedAt: Date
  /** Its place among the inbox's messages. */
  offset: number
  /** Each filter that it is not as, in words. */
  mismatches: readonly string[]
}

/** As many as a client is told of. */
const MOST = 5

/** The nearest of those known so far and one more: with the fewest mismatches, among them the newest, first. */
export function nearestWith(nearest: readonly NearMiss[], miss: NearMiss): readonly NearMiss[] {
  const place = nearest.findIndex((other) => isNearer(miss, other))
  if (place < 0) return nearest.length < MOST ? [...nearest, miss] : nearest
  return nearest.toSpliced(place, 0, miss).slice(0, MOST)
}

function isNearer(one: NearMiss, other: NearMiss): boolean {
  const further = one.mismatches.length - other.mismatches.length
  return further === 0 ? one.offset > other.offset : further < 0
}
