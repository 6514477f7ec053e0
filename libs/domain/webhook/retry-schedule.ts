const SECOND_MS = 1_000
const MINUTE_MS = 60 * SECOND_MS
const HOUR_MS = 60 * MINUTE_MS

/** The delay before each attempt, counted from the previous one. The first attempt is made at once. */
const DELAYS_MS: readonly number[] = [
  0,
  5 * SECOND_MS,
  5 * MINUTE_MS,
  30 * MINUTE_MS,
  2 * HOUR_MS,
  5 * HOUR_MS,
  10 * HOUR_MS,
  14 * HOUR_MS,
  20 * HOUR_MS,
  24 * HOUR_MS,
]
/** A longer Retry-After is shortened to this. */
const MAX_WAIT_MS = 24 * HOUR_MS
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
  const delayMs = DELAYS_MS[attempt]
  if (delayMs === undefined) return null
  const requestedMs = Math.min(retryAfterMs ?? 0, MAX_WAIT_MS)
  const waitMs = Math.max(delayMs * (1 + JITTER * random), requestedMs)
  return new Date(failedAt.getTime() + Math.round(waitMs))
}
