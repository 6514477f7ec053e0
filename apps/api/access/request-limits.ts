import type { FastifyReply, FastifyRequest } from 'fastify'
import {
  type PolicyStatus,
  RateLimitsUnavailableError,
  type RateLimits,
  type RateGroup,
  type RatePolicies,
  type RateResult,
} from '#libs/ports/rate-limit/rate-limits.js'
import { Problem } from '../http/problems.js'
import { principalOf, type Principal } from './principal.js'

/**
 * Counts every request with a valid key or token against its quota and its account's, and sends what remains of its own.
 * A request that is refused for one of them does not use up the other.
 */
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
    const shown = policies.map(({ name, quota, windowSeconds }) => `"${name}";q=${quota};w=${windowSeconds}`)
    void reply.header('ratelimit-policy', shown.join(', '))
    const { countedBy } = principal
    const group = groupOf(principal)
    const verdict = await this.throttle.count((limits) => limits.consume(countedBy, policies, group))
    if (verdict === null) return
    const refusal = this.setRemaining(reply, verdict)
    if (refusal !== null) {
      throw rateLimited(
        refusal.refillsInMs,
        (seconds) => `${usedUp(refusal, ', and its burst')} The next request passes in ${seconds} s.`,
      )
    }
  }

  /**
   * Counts further requests of a caller towards its sustained quota and its account's, also beyond them, and sets the headers
   * again. Resolves with rate-limited, and counts nothing, if one was exceeded before; otherwise with null.
   */
  async charge(principal: Principal, requests: number, reply: FastifyReply): Promise<Problem | null> {
    if (requests === 0) return null
    const { countedBy, requestsPerMinute } = principal
    const policies = requestPolicies(requestsPerMinute)
    const group = groupOf(principal)
    const charge = (limits: RateLimits) => limits.charge(countedBy, policies[0], requests, group)
    const verdict = await this.throttle.count(charge)
    if (verdict?.isAllowed === true) {
      const status = await this.throttle.count((limits) => limits.peek(countedBy, policies, group))
      if (status !== null) this.setRemaining(reply, { ...status, isAllowed: true })
      return null
    }
    const refusal = verdict && this.setRemaining(reply, verdict)
    if (refusal === null) return null
    return rateLimited(
      refusal.refillsInMs,
      (seconds) => `${usedUp(refusal)} A request that counts as several passes in ${seconds} s.`,
    )
  }

  /** The headers are about the caller's own quotas. Returns the quota that refuses the request, if one does. */
  private setRemaining(reply: FastifyReply, { isAllowed, next, group }: RateResult): PolicyStatus | null {
    const isShared = group?.remaining === 0
    const isOwn = !isShared || (next.remaining === 0 && next.refillsInMs > group.refillsInMs)
    const refusal = isAllowed ? null : isOwn ? next : group
    const remaining = refusal === null ? next.remaining : 0
    const { refillsInMs } = refusal ?? next
    void reply.headers({
      ratelimit: `"${next.policy.name}";r=${remaining};t=${secondsUntil(refillsInMs)}`,
      'x-ratelimit-limit': next.policy.quota,
      'x-ratelimit-remaining': remaining,
      'x-ratelimit-reset': Math.ceil((this.now().getTime() + refillsInMs) / 1_000),
    })
    return refusal
  }
}

const ACCOUNT = 'account'

/** What the callers of an account are counted by together. */
function groupOf({ accountId, accountRequestsPerMinute: quota }: Principal): RateGroup | undefined {
  return quota === null ? undefined : { key: accountId, policy: { name: ACCOUNT, quota, windowSeconds: 60 } }
}

function usedUp({ policy: { name, quota, windowSeconds } }: PolicyStatus, more = ''): string {
  return name === ACCOUNT
    ? `The account has reached its limit of ${quota} requests in ${windowSeconds} s, by all its keys, sessions and tokens together.`
    : `The key has used its quota of ${quota} requests in ${windowSeconds} s${more}.`
}

/** A sustained rate, and in addition a burst of half as many requests, at least one, every ten minutes. */
function requestPolicies(requestsPerMinute: number): RatePolicies {
  return [
    { name: 'sustained', quota: requestsPerMinute, windowSeconds: 60 },
    { name: 'burst', quota: Math.max(Math.floor(requestsPerMinute / 2), 1), windowSeconds: 600 },
  ]
}

/** The 429 of a used quota. `detail` gets the seconds until it refills. */
export function rateLimited(refillsInMs: number, detail: (seconds: number) => string): Problem {
  const seconds = secondsUntil(refillsInMs)
  return new Problem('rate-limited', {
    detail: detail(seconds),
    headers: { 'retry-after': String(seconds) },
  })
}

/** Rate limits that may be unavailable: then `count` resolves with null, and `onUnavailable` is called. */
export class Throttle {
  constructor(
    private readonly limits: RateLimits,
    private readonly onUnavailable: (error: RateLimitsUnavailableError) => void,
  ) {}

  async count(use: (limits: RateLimits) => Promise<RateResult>): Promise<RateResult | null> {
    try {
      return await use(this.limits)
    } catch (error) {
      if (!(error instanceof RateLimitsUnavailableError)) throw error
      this.onUnavailable(error)
      return null
    }
  }
}

/** The seconds until the quota refills, rounded up, at least 1. */
export function secondsUntil(refillsInMs: number): number {
  return Math.max(Math.ceil(refillsInMs / 1_000), 1)
}
