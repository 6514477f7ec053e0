import { parseGrace } from '#libs/domain/account/access.js'

/** The delay before each attempt, counted from the previous one. The first attempt is made at once. */
const DELAYS_MS = ['0', '5s', '5m', '30m', '2h', '5h', '10h', '14h', '20h', '24h'].map(parseGrace)
/** A longer Retry-After is shortened to this. */
const MAX_WAIT_MS = 24 * 3_600_000
/** Share of the delay that is added at random, so that deliveries that failed together aren't retried together. */
const JITTER = 0.1

interface RetryInput {
  /** Counted from 1. */
  attempt: number
  failedAt: Date
  /** The endpoint's Retry-After (RFC 9110, section 10.2.3); null if there was none. */
  retryAfterMs: number | null
  /** At least 0, less than 1. */
  random: number
}

/** When to try again; null if it was the last attempt. */
export function nextAttemptAt({ attempt, failedAt, retryAfterMs, random }: RetryInput): Date | null {
  const delayMs = DELAYS_MS[attempt] ?? null
  if (delayMs === null) return null
  const requestedMs = Math.min(retryAfterMs ?? 0, MAX_WAIT_MS)
  const waitMs = Math.max(delayMs * (1 + JITTER * random), requestedMs)
  return new Date(failedAt.getTime() + Math.round(waitMs))
}
