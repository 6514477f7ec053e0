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
  /** The quota of the group; null without a group. */
  group: PolicyStatus | null
}

/** Policies are used in order: when one is exhausted, the next is used. */
export type RatePolicies = readonly [RatePolicy, ...RatePolicy[]]

/** A quota that several keys share, such as those of an account. A key must always be counted with the same group. */
export interface RateGroup {
  key: string
  policy: RatePolicy
}

/**
 * Counts requests by key, and by the key's group. What is not allowed is not counted at all. All methods reject with
 * RateLimitsUnavailableError, without a long wait, if the store fails.
 */
export interface RateLimits {
  /** Counts a request towards the first policy with remaining quota. Not allowed if all are exhausted, or the group's is. */
  consume(key: string, policies: RatePolicies, group?: RateGroup): Promise<RateResult>
  /** Counts that many requests, also beyond the quotas. Not allowed if the policy's or the group's was exceeded before. */
  charge(key: string, policy: RatePolicy, count: number, group?: RateGroup): Promise<RateResult>
  /** Whether a request would be allowed now, without counting it. */
  peek(key: string, policies: RatePolicies, group?: RateGroup): Promise<RateResult>
}

/** The counts are unavailable. The request may have been counted. */
export class RateLimitsUnavailableError extends UnavailableError {}

/** A count in a store, with what it must be below to allow more. */
export interface Count {
  name: string
  limit: number
  windowSeconds: number
}

/**
 * One atomic step of a store of counts: if the group's count and one of `own` are below their limits, adds the amount to the
 * group's, and to the first of `own` that is. Resolves with all counts afterwards, the group's first. `msLeft` is 0 or
 * less if no window has started.
 */
export type CountStep = (step: { group: Count | null; own: readonly Count[]; amount: number }) => Promise<{
  isAllowed: boolean
  counts: readonly { used: number; msLeft: number }[]
}>

/** Rate limits on a store of counts. */
export function rateLimits(count: CountStep): RateLimits {
  /** With an excess of 1, a quota that is used up, but not exceeded, allows more. */
  async function run(
    { amount, excess = 0 }: { amount: number; excess?: 0 | 1 },
    key: string,
    policies: RatePolicies,
    group?: RateGroup,
  ): Promise<RateResult> {
    const countOf = (owner: string, { name, quota, windowSeconds }: RatePolicy) => ({
      // Redis Cluster keeps names with the same text in braces together.
      name: `${name}:{${group?.key ?? key}}${owner === key ? `:${key}` : ''}`,
      limit: quota + excess,
      windowSeconds,
    })
    const { isAllowed, counts } = await count({
      group: group === undefined ? null : countOf(group.key, group.policy),
      own: policies.map((policy) => countOf(key, policy)),
      amount,
    })
    const counted = group === undefined ? policies : [group.policy, ...policies]
    const statuses = counted.map((policy, index) => statusOf(policy, counts[index]))
    const shared = group === undefined ? null : (statuses.shift() ?? null)
    return { isAllowed, next: nextOf(statuses), group: shared }
  }
  return {
    consume: (key, policies, group) => run({ amount: 1 }, key, policies, group),
    charge: (key, policy, amount, group) => run({ amount, excess: 1 }, key, [policy], group),
    peek: (key, policies, group) => run({ amount: 0 }, key, policies, group),
  }
}

function statusOf(policy: RatePolicy, { used, msLeft } = { used: 0, msLeft: 0 }): PolicyStatus {
  const refillsInMs = msLeft > 0 ? msLeft : policy.windowSeconds * 1_000
  return { policy, remaining: Math.max(policy.quota - used, 0), refillsInMs }
}

function nextOf(statuses: readonly PolicyStatus[]): PolicyStatus {
  const firstToRefill = (first: PolicyStatus, other: PolicyStatus) =>
    other.refillsInMs < first.refillsInMs ? other : first
  return statuses.find(({ remaining }) => remaining > 0) ?? statuses.reduce(firstToRefill)
}
