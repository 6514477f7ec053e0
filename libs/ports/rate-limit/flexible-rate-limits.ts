import type { RateLimiterAbstract, RateLimiterRes } from 'rate-limiter-flexible'
import type { PolicyStanding, RateLimits, RatePolicies, RatePolicy, RateVerdict } from './rate-limits.js'

/*
 * Relies on rate-limiter-flexible 11: `penalty` adds to a count and begins its window where there is none, in one step,
 * and never refuses; `get` gives null, or a count whose window may just be over. Quotas are compared here, since one
 * limiter, and with it one store, serves policies of every size.
 */

/** What a limiter is made with: a quota and a window that every call says otherwise. */
export const ANY_POLICY = { points: Number.MAX_SAFE_INTEGER, duration: 1 } as const

/** Rate limits on a limiter, whatever it stores in. */
export class FlexibleRateLimits implements RateLimits {
  constructor(private readonly limiter: Pick<RateLimiterAbstract, 'penalty' | 'get'>) {}

  async consume(key: string, policies: RatePolicies): Promise<RateVerdict> {
    const passed: PolicyStanding[] = []
    for (const [index, policy] of policies.entries()) {
      const { consumedPoints, msBeforeNext } = await this.limiter.penalty(countOf(key, policy), 1, {
        customDuration: policy.windowSeconds,
      })
      const standing = standingOf(policy, consumedPoints, msBeforeNext)
      passed.push(standing)
      if (consumedPoints > policy.quota) continue
      if (standing.remaining > 0) return { isAllowed: true, next: standing }
      return {
        isAllowed: true,
        next: (await this.firstWithSome(key, policies.slice(index + 1), passed)).next,
      }
    }
    return { isAllowed: false, next: firstToRefill(passed) }
  }

  peek(key: string, policies: RatePolicies): Promise<RateVerdict> {
    return this.firstWithSome(key, policies, [])
  }

  private async firstWithSome(
    key: string,
    policies: readonly RatePolicy[],
    usedUp: PolicyStanding[],
  ): Promise<RateVerdict> {
    for (const policy of policies) {
      const found: RateLimiterRes | null = await this.limiter.get(countOf(key, policy))
      const hasBegun = found !== null && found.msBeforeNext > 0
      const standing = standingOf(
        policy,
        hasBegun ? found.consumedPoints : 0,
        hasBegun ? found.msBeforeNext : policy.windowSeconds * 1_000,
      )
      if (standing.remaining > 0) return { isAllowed: true, next: standing }
      usedUp.push(standing)
    }
    return { isAllowed: false, next: firstToRefill(usedUp) }
  }
}

function countOf(key: string, { name }: RatePolicy): string {
  return `${name}:${key}`
}

function standingOf(policy: RatePolicy, used: number, msBeforeNext: number): PolicyStanding {
  return { policy, remaining: Math.max(policy.quota - used, 0), refillsInMs: Math.max(msBeforeNext, 1) }
}

function firstToRefill(standings: readonly PolicyStanding[]): PolicyStanding {
  return standings.reduce((first, other) => (other.refillsInMs < first.refillsInMs ? other : first))
}
