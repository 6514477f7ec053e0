import { RateLimiterMemory, type RateLimiterAbstract, type RateLimiterRes } from 'rate-limiter-flexible'
import type { PolicyStatus, RateLimits, RatePolicy, RateResult } from './rate-limits.js'

/*
 * Relies on rate-limiter-flexible 11: `penalty` increments a count, starts its window if there is none, atomically, and
 * never refuses; `get` returns null, or a count whose window may just have ended. Quotas are compared here, so that one
 * limiter and its store serve all policies.
 */

/** Options for making a limiter. Every call overrides the quota and the window. */
export const ANY_POLICY = { points: Number.MAX_SAFE_INTEGER, duration: 1 } as const

/** Rate limits with a limiter of rate-limiter-flexible, for any store. */
export function flexibleRateLimits(limiter: Pick<RateLimiterAbstract, 'penalty' | 'get'>): RateLimits {
  return {
    async consume(key, policies) {
      const statuses: PolicyStatus[] = []
      for (const [index, policy] of policies.entries()) {
        const { used, status } = await count(key, policy, 1)
        statuses.push(status)
        if (used > policy.quota) continue
        if (status.remaining > 0) return { isAllowed: true, next: status }
        const { next } = await firstWithQuota(key, policies.slice(index + 1), statuses)
        return { isAllowed: true, next }
      }
      return { isAllowed: false, next: firstToRefill(statuses) }
    },

    async charge(key, policy, amount) {
      const { used, status } = await count(key, policy, amount)
      return { isAllowed: used - amount <= policy.quota, next: status }
    },

    peek: (key, policies) => firstWithQuota(key, policies, []),
  }

  async function count(key: string, policy: RatePolicy, amount: number) {
    const options = { customDuration: policy.windowSeconds }
    const { consumedPoints, msBeforeNext } = await limiter.penalty(countOf(key, policy), amount, options)
    return { used: consumedPoints, status: statusOf(policy, consumedPoints, msBeforeNext) }
  }

  async function firstWithQuota(
    key: string,
    policies: readonly RatePolicy[],
    exhausted: PolicyStatus[],
  ): Promise<RateResult> {
    for (const policy of policies) {
      const found: RateLimiterRes | null = await limiter.get(countOf(key, policy))
      const hasBegun = found !== null && found.msBeforeNext > 0
      const status = hasBegun
        ? statusOf(policy, found.consumedPoints, found.msBeforeNext)
        : statusOf(policy, 0, policy.windowSeconds * 1_000)
      if (status.remaining > 0) return { isAllowed: true, next: status }
      exhausted.push(status)
    }
    return { isAllowed: false, next: firstToRefill(exhausted) }
  }
}

/**
 * Counts the requests of one process. The store has an entry and a timer for each key whose window is open, so its size is
 * bounded by the keys used within their windows.
 */
export function memoryRateLimits(): RateLimits {
  return flexibleRateLimits(new RateLimiterMemory({ ...ANY_POLICY, keyPrefix: '' }))
}

function countOf(key: string, { name }: RatePolicy): string {
  return `${name}:${key}`
}

function statusOf(policy: RatePolicy, used: number, msBeforeNext: number): PolicyStatus {
  return { policy, remaining: Math.max(policy.quota - used, 0), refillsInMs: Math.max(msBeforeNext, 1) }
}

function firstToRefill(statuses: readonly PolicyStatus[]): PolicyStatus {
  return statuses.reduce((first, other) => (other.refillsInMs < first.refillsInMs ? other : first))
}
