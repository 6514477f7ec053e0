import { RateLimiterMemory } from 'rate-limiter-flexible'
import { ANY_POLICY, FlexibleRateLimits } from '#libs/ports/rate-limit/flexible-rate-limits.js'
import type { RateLimits } from '#libs/ports/rate-limit/rate-limits.js'

/*
 * Relies on rate-limiter-flexible's store in memory: it has an entry and a timer for each key whose window is open, so
 * its size is bounded by the keys used within their windows. The counts are lost when the process ends.
 */

/** Counts the requests of one process. */
export function memoryRateLimits(): RateLimits {
  return new FlexibleRateLimits(new RateLimiterMemory({ ...ANY_POLICY, keyPrefix: '' }))
}
