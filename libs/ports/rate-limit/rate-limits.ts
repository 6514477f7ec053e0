import { UnavailableError } from '#libs/runtime/errors.js'

/** A quota for each window. A window begins with the first request that is counted in it. */
export interface RatePolicy {
  /** Letters, digits and dashes. Policies of different names count separately. */
  name: string
  /** 0 or more. */
  quota: number
  /** Whole seconds. */
  windowSeconds: number
}

export interface PolicyStanding {
  policy: RatePolicy
  /** The rest of the quota in this window. */
  remaining: number
  /** Until the quota is full again, more than 0; the whole window if none has begun. */
  refillsInMs: number
}

export interface RateVerdict {
  isAllowed: boolean
  /** The policy that the next request uses; if all are used up, the one that refills first. */
  next: PolicyStanding
}

/** Policies are used in their order: when the quota of one is used up, the next is used. */
export type RatePolicies = readonly [RatePolicy, ...RatePolicy[]]

/** Counts requests by key. Both methods reject with RateLimitsUnavailableError, soon, if the counts are out of reach. */
export interface RateLimits {
  /** Resolves once one has been counted in the first policy with quota left; not allowed if none has any. */
  consume(key: string, policies: RatePolicies): Promise<RateVerdict>
  /** Whether one would be allowed now; counts none. */
  peek(key: string, policies: RatePolicies): Promise<RateVerdict>
}

/** The counts are out of reach for now. The request may have been counted. */
export class RateLimitsUnavailableError extends UnavailableError {
  override readonly name = 'RateLimitsUnavailableError'
}
