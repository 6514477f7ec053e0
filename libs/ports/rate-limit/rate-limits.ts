import { UnavailableError } from '#libs/runtime/errors.js'
/** So many in each window, which begins with the first that is taken and is over at once. */
export interface RatePolicy {
  /** Letters, digits and dashes; counts of different names know nothing of each other. */
  name: string
  /** 0 or more. */
  quota: number
  /** Whole seconds. */
  windowSeconds: number
}

export interface PolicyStanding {
  policy: RatePolicy
  /** What is left of the quota in this window. */
  remaining: number
  /** Until the quota is whole again, more than 0; the whole window where none has begun. */
  refillsInMs: number
}

export interface RateVerdict {
  isAllowed: boolean
  /** The policy that the next one draws on; where none has any left, the one that refills first. */
  next: PolicyStanding
}

/** Policies are drawn on in their order: one whose quota is used up leaves it to the next. */
export type RatePolicies = readonly [RatePolicy, ...RatePolicy[]]

/** Counts what each key has done. Both methods reject with RateLimitsUnavailableError, soon, where nobody can tell. */
export interface RateLimits {
  /** Resolves once one has been taken, from the first policy that had any left: not allowed where none had. */
  consume(key: string, policies: RatePolicies): Promise<RateVerdict>
  /** Whether one could be taken now; takes none. */
  peek(key: string, policies: RatePolicies): Promise<RateVerdict>
}

/** The counts are out of reach for now. What was to be taken may have been. */
export class RateLimitsUnavailableError extends UnavailableError {
  override readonly name = 'RateLimitsUnavailableError'
}
