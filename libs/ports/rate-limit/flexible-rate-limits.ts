import type { RateLimiterAbstract, RateLimiterRes } from 'rate-limiter-flexible'
import type { PolicyStatus, RateLimits, RatePolicies, RatePolicy, RateResult } from './rate-limits.js'

/*
 * Relies on rate-limiter-flexible 11: `penalty` increments a count, starts its window if there is none, atomically, and
 * never refuses; `get` returns null, or a count whose window may just have ended. Quotas are compared here, so that one
 * limiter and its store serve all policies.
 */

/** Options for making a limiter. Every call overrides the quota and the window. */
export const ANY_POLICY = { points: Number.MAX_SAFE_INTEGER, duration: 1 } as const

/** Rate limits with a limiter of rate-limiter-flexible, for any store. */
export class FlexibleRateLimits implements RateLimits {
  constructor(private readonly limiter: Pick<RateLimiterAbstract, 'penalty' | 'get'>) {}

  async consume(key: string, policies: RatePolicies): Promise<RateResult> {
    const statuses: PolicyStatus[] = []
    for (const [index, policy] of policies.entries()) {
      const { consumedPoints, msBeforeNext } = await this.limiter.penalty(countOf(key, policy), 1, {
        customDuration: policy.windowSeconds,
      })
      const status = statusOf(policy, consumedPoints, msBeforeNext)
      statuses.push(status)
      if (consumedPoints > policy.quota) continue
      if (status.remaining > 0) return { isAllowed: true, next: status }
      return {
        isAllowed: true,
        next: (await this.firstWithQuota(key, policies.slice(index + 1), statuses)).next,
      }
    }
    return { isAllowed: false, next: firstToRefill(statuses) }
  }

  async charge(key: string, policy: RatePolicy, count: number): Promise<RateResult> {
    const { consumedPoints, msBeforeNext } = await this.limiter.penalty(countOf(key, policy), count, {
      customDuration: policy.windowSeconds,
    })
    const isAllowed = consumedPoints - count <= policy.quota
    return { isAllowed, next: statusOf(policy, consumedPoints, msBeforeNext) }
  }

  peek(key: string, policies: RatePolicies): Promise<RateResult> {
    return this.firstWithQuota(key, policies, [])
  }

  private async firstWithQuota(
    key: string,
    policies: readonly RatePolicy[],
    exhausted: PolicyStatus[],
  ): Promise<RateResult> {
    for (const policy of policies) {
      const found: RateLimiterRes | null = await this.limiter.get(countOf(key, policy))
      const hasBegun = found !== null && found.msBeforeNext > 0
      const status = statusOf(
        policy,
        hasBegun ? found.consumedPoints : 0,
        hasBegun ? found.msBeforeNext : policy.windowSeconds * 1_000,
      )
      if (status.remaining > 0) return { isAllowed: true, next: status }
      exhausted.push(status)
    }
    return { isAllowed: false, next: firstToRefill(exhausted) }
  }
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
