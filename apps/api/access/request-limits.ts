import type { FastifyReply, FastifyRequest } from 'fastify'
import {
  type PolicyStatus,
  RateLimitsUnavailableError,
  type RateLimits,
  type RatePolicies,
  type RatePolicy,
  type RateResult,
} from '#libs/ports/rate-limit/rate-limits.js'
import { Problem } from '../http/problems.js'
import { principalOf, type Principal } from './principal.js'

/** Counts every request with a valid key or token against its quota, and sends what remains of it. */
export class RequestLimits {
  constructor(
    private readonly throttle: Throttle,
    private readonly now: () => Date,
  ) {}

  /**
   * Sets the headers of draft-ietf-httpapi-ratelimit-headers-10, and the older X-RateLimit headers. Throws rate-limited
   * if no quota is left. If requests can't be counted, they pass, without the headers about the remaining quota.
   */
  async count(request: FastifyRequest, reply: FastifyReply): Promise<void> {
    const principal = principalOf(request)
    // A plan without requests has no API access. ScopeGuard refuses the request.
    if (principal === null || principal.requestsPerMinute === 0) return
    const policies = requestPolicies(principal.requestsPerMinute)
    void reply.header('ratelimit-policy', policies.map(policyText).join(', '))
    const verdict = await this.throttle.consume(principal.countedBy, policies)
    if (verdict === null) return
    this.setRemaining(reply, verdict.next)
    if (verdict.isAllowed) return
    const { policy, refillsInMs } = verdict.next
    const { quota, windowSeconds } = policy
    throw rateLimited(
      refillsInMs,
      (untilNext) =>
        `The key has used its quota of ${quota} requests in ${windowSeconds} s, and its burst. The next request passes in ${untilNext} s.`,
    )
  }

  /**
   * Counts further requests of a caller towards its sustained quota, also beyond it, and sets the headers again. Resolves
   * with rate-limited if it was exceeded before; otherwise with null.
   */
  async charge(
    { countedBy, requestsPerMinute }: Principal,
    requests: number,
    reply: FastifyReply,
  ): Promise<Problem | null> {
    if (requests === 0) return null
    const policies = requestPolicies(requestsPerMinute)
    const [sustained] = policies
    const verdict = await this.throttle.charge(countedBy, sustained, requests)
    const status = verdict?.isAllowed === true ? await this.throttle.peek(countedBy, policies) : verdict
    if (status !== null) this.setRemaining(reply, status.next)
    if (verdict === null || verdict.isAllowed) return null
    const { quota, windowSeconds } = sustained
    return rateLimited(
      verdict.next.refillsInMs,
      (seconds) =>
        `The key has used its quota of ${quota} requests in ${windowSeconds} s. A request that counts as several passes in ${seconds} s.`,
    )
  }

  private setRemaining(reply: FastifyReply, { policy, remaining, refillsInMs }: PolicyStatus): void {
    void reply.headers({
      ratelimit: `"${policy.name}";r=${remaining};t=${secondsUntil(refillsInMs)}`,
      'x-ratelimit-limit': policy.quota,
      'x-ratelimit-remaining': remaining,
      'x-ratelimit-reset': Math.ceil((this.now().getTime() + refillsInMs) / 1_000),
    })
  }
}

/** A sustained rate, and in addition a burst of half as many requests, at least one, every ten minutes. */
function requestPolicies(requestsPerMinute: number): RatePolicies {
  return [
    { name: 'sustained', quota: requestsPerMinute, windowSeconds: 60 },
    { name: 'burst', quota: Math.max(Math.floor(requestsPerMinute / 2), 1), windowSeconds: 600 },
  ]
}

function policyText({ name, quota, windowSeconds }: RatePolicy): string {
  return `"${name}";q=${quota};w=${windowSeconds}`
}

/** The 429 of a used quota. `detail` gets the seconds until it refills. */
export function rateLimited(refillsInMs: number, detail: (seconds: number) => string): Problem {
  const seconds = secondsUntil(refillsInMs)
  return new Problem('rate-limited', {
    detail: detail(seconds),
    headers: { 'retry-after': String(seconds) },
  })
}

/** Rate limits that may be unavailable: its methods then resolve with null, and `onUnavailable` is called. */
export class Throttle {
  constructor(
    private readonly options: {
      limits: RateLimits
      onUnavailable: (error: RateLimitsUnavailableError) => void
    },
  ) {}

  consume(key: string, policies: RatePolicies): Promise<RateResult | null> {
    return this.orNull(this.options.limits.consume(key, policies))
  }

  peek(key: string, policies: RatePolicies): Promise<RateResult | null> {
    return this.orNull(this.options.limits.peek(key, policies))
  }

  charge(key: string, policy: RatePolicy, count: number): Promise<RateResult | null> {
    return this.orNull(this.options.limits.charge(key, policy, count))
  }

  private async orNull<Result>(verdict: Promise<Result>): Promise<Result | null> {
    try {
      return await verdict
    } catch (error) {
      if (!(error instanceof RateLimitsUnavailableError)) throw error
      this.options.onUnavailable(error)
      return null
    }
  }
}

/** The seconds until the quota refills, rounded up, at least 1. */
export function secondsUntil(refillsInMs: number): number {
  return Math.max(Math.ceil(refillsInMs / 1_000), 1)
}
