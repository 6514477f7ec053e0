import type { RateLimits, RatePolicies, RateVerdict } from '#libs/ports/rate-limit/rate-limits.js'
import { RateLimitsUnavailableError } from '#libs/ports/rate-limit/rate-limits.js'

export interface ThrottleOptions {
  limits: RateLimits
  /** Told of each time that nobody could tell. */
  onUnavailable: (error: RateLimitsUnavailableError) => void
}

/** Rate limits that let pass what nobody can count: both methods then resolve with null, and with no verdict more. */
export class Throttle {
  constructor(private readonly options: ThrottleOptions) {}

  consume(key: string, policies: RatePolicies): Promise<RateVerdict | null> {
    return this.orNull(this.options.limits.consume(key, policies))
  }

  peek(key: string, policies: RatePolicies): Promise<RateVerdict | null> {
    return this.orNull(this.options.limits.peek(key, policies))
  }

  private async orNull(asked: Promise<RateVerdict>): Promise<RateVerdict | null> {
    try {
      return await asked
    } catch (error) {
      if (!(error instanceof RateLimitsUnavailableError)) throw error
      this.options.onUnavailable(error)
      return null
    }
  }
}

/** Whole seconds after which the quota has certainly refilled, at least 1. */
export function secondsUntil(refillsInMs: number): number {
  return Math.max(Math.ceil(refillsInMs / 1_000), 1)
}
