import { RateLimiterRedis } from 'rate-limiter-flexible'
import type { RedisClient } from '#libs/engines/distributed/redis/client/redis-client.js'
import { messageOf } from '#libs/runtime/errors.js'
import { beforeDeadline } from '#libs/runtime/timing/waiting.js'
import { ANY_POLICY, FlexibleRateLimits } from '#libs/ports/rate-limit/flexible-rate-limits.js'
import { RateLimitsUnavailableError, type RateLimits } from '#libs/ports/rate-limit/rate-limits.js'

/*
 * Relies on Redis's own clock and expiry: each count is a key of its own, in its own slot of a Cluster, that expires
 * with its window to the millisecond, set, counted and timed by one script. A count that a failover loses starts again.
 */

interface RedisRateLimitsOptions {
  /** Stays the caller's, who closes it. */
  client: RedisClient
  /** Begins every key; without braces. */
  prefix: string
  /** No request waits longer to be counted. */
  withinMs?: number
}

const COUNTED_WITHIN_MS = 250

/** Counts that every process shares. */
export function redisRateLimits({
  client,
  prefix,
  withinMs = COUNTED_WITHIN_MS,
}: RedisRateLimitsOptions): RateLimits {
  const limiter = new RateLimiterRedis({
    ...ANY_POLICY,
    storeClient: client,
    keyPrefix: `${prefix}rate-limit`,
  })
  const limits = new FlexibleRateLimits(limiter)
  return {
    consume: (key, policies) => reach(limits.consume(key, policies), withinMs),
    peek: (key, policies) => reach(limits.peek(key, policies), withinMs),
  }
}

async function reach<Answer>(asked: Promise<Answer>, withinMs: number): Promise<Answer> {
  try {
    return await beforeDeadline(withinMs, asked)
  } catch (cause) {
    throw new RateLimitsUnavailableError(`the counts in Redis are out of reach: ${messageOf(cause)}`, {
      cause,
    })
  }
}
