import { RateLimiterMemory } from 'rate-limiter-flexible'
import { ANY_POLICY, FlexibleRateLimits } from '#libs/ports/rate-limit/flexible-rate-limits.js'
import type { RateLimits } from '#libs/ports/rate-limit/rate-limits.js'

/*
 * Relies on rate-limiter-flexible's store in memory: an entry and a timer for each key whose window is open, and none
 * afterwards, so it is bounded by the keys that were used within their windows. The counts end with the process.
 */

/** Counts of one process. */
export function memoryRateLimits(): RateLimits {
  return new FlexibleRateLimits(new RateLimiterMemory({ ...ANY_POLICY, keyPrefix: '' }))
}
