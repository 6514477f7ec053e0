import { UnavailableError } from '#libs/runtime/errors.js'

/** A quota per window. A window starts with the first request that is counted in it. */
export interface RatePolicy {
  /** Letters, digits and dashes. Policies of different names count separately. */
  name: string
  /** 0 or more. */
  quota: number
  /** Whole seconds. */
  windowSeconds: number
}

export interface PolicyStatus {
  policy: RatePolicy
  /** The remaining quota of this window. */
  remaining: number
  /** Time until the quota is full again; more than 0, and the whole window if none has started. */
  refillsInMs: number
}

export interface RateResult {
  isAllowed: boolean
  /** The policy that the next request counts towards; if all are exhausted, the one that refills first. */
  next: PolicyStatus
}

/** Policies are used in order: when one is exhausted, the next is used. */
export type RatePolicies = readonly [RatePolicy, ...RatePolicy[]]

/** Counts requests by key. All methods reject with RateLimitsUnavailableError, without a long wait, if the store fails. */
export interface RateLimits {
  /** Counts a request towards the first policy with remaining quota. Not allowed if all are exhausted. */
  consume(key: string, policies: RatePolicies): Promise<RateResult>
  /** Counts that many requests towards a policy, also beyond its quota. Not allowed if it was exceeded before. */
  charge(key: string, policy: RatePolicy, count: number): Promise<RateResult>
  /** Whether a request would be allowed now, without counting it. */
  peek(key: string, policies: RatePolicies): Promise<RateResult>
}

/** The counts are unavailable. The request may have been counted. */
export class RateLimitsUnavailableError extends UnavailableError {}
