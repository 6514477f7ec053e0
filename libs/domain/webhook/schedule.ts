const SECOND_MS = 1_000
const MINUTE_MS = 60 * SECOND_MS
const HOUR_MS = 60 * MINUTE_MS

/** Before each attempt, from the one before it on: the first is made at once. */
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
export const MAX_ATTEMPTS = DELAYS_MS.length
/** An endpoint that asks for more is asked again then. */
const LONGEST_WAIT_MS = 24 * HOUR_MS
/** Of a delay: so that what failed together is not tried again together. Never earlier than the delay. */
const JITTER = 0.1

export interface FailedAttempt {
  /** From 1 on. */
  attempt: number
  failedAt: Date
  /** What the endpoint asked for (RFC 9110, section 10.2.3); null if it did not. */
  retryAfterMs: number | null
  /** At least 0, less than 1. */
  random: number
}

/** When to try again; null if it was the last attempt. */
export function nextAttemptAt({ attempt, failedAt, retryAfterMs, random }: FailedAttempt): Date | null {
  const delayMs = DELAYS_MS[attempt]
  if (delayMs === undefined) return null
  const askedMs = Math.min(retryAfterMs ?? 0, LONGEST_WAIT_MS)
  const waitMs = Math.max(delayMs * (1 + JITTER * random), askedMs)
  return new Date(failedAt.getTime() + Math.round(waitMs))
}
