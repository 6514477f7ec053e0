import type { OpenedMessage } from '#libs/mail/json/message-json.js'
import { Problem } from '../http/problems.js'

/*
 * What a wait has found so far: the messages that came nearest to a match, and the answer if none matched.
 */

/** A message that did not match. */
interface NearMiss extends Pick<OpenedMessage, 'id' | 'inboxId' | 'receivedAt'> {
  subject: string | null
  /** A sentence for each filter that it does not match. */
  mismatches: readonly string[]
}

/** The messages that a wait has examined without a match. */
export interface Misses {
  examined: number
  nearest: readonly NearMiss[]
}

export const NO_MISSES: Misses = { examined: 0, nearest: [] }

const MAX_NEAREST = 5

/** Adds a message. The nearest are those with the fewest mismatches, of these the newest. */
export function addMiss(
  { examined, nearest }: Misses,
  { id, inboxId, receivedAt, mail: { subject } }: OpenedMessage,
  mismatches: readonly string[],
): Misses {
  const miss = { id, inboxId, subject, receivedAt, mismatches }
  const index = nearest.findIndex((other) => isNearer(miss, other))
  const at = index < 0 ? nearest.length : index
  return { examined: examined + 1, nearest: nearest.toSpliced(at, 0, miss).slice(0, MAX_NEAREST) }
}

function isNearer(one: NearMiss, other: NearMiss): boolean {
  const further = one.mismatches.length - other.mismatches.length
  return further === 0 ? one.receivedAt > other.receivedAt : further < 0
}

/**
 * The answer to a wait without a match; `ifNone` says why there was no message to examine, and `hint` why a message may
 * be missing. The status is not 408, since several HTTP clients silently repeat a request that is answered 408.
 */
export function noMatch(
  { examined, nearest }: Misses,
  { ifNone, hint }: { ifNone: string; hint: string | null },
  cursor: string,
): Problem {
  const why = examined === 0 ? ifNone : `Messages examined without a match: ${examined}.`
  return new Problem('no-matching-message', {
    detail: hint === null ? why : `${why} ${hint}`,
    headers: { 'mayfly-cursor': cursor },
    members: {
      examined,
      nearest: nearest.map(({ id, inboxId, subject, receivedAt, mismatches }) => ({
        id,
        inbox_id: inboxId,
        subject,
        received_at: receivedAt.toISOString(),
        mismatches,
      })),
      cursor,
    },
  })
}
