import { RateLimiterRedis } from 'rate-limiter-flexible'
import type { RedisClient } from '#libs/engines/distributed/redis/client/redis-client.js'
import { messageOf } from '#libs/runtime/errors.js'
import { beforeDeadline } from '#libs/runtime/timing.js'
import { ANY_POLICY, flexibleRateLimits } from '#libs/ports/rate-limit/flexible-rate-limits.js'
import { RateLimitsUnavailableError, type RateLimits } from '#libs/ports/rate-limit/rate-limits.js'

/*
 * Relies on Redis's clock and expiry. Each count is a key, in any slot of a Cluster, that expires at the end of its window.
 * One script creates, increments and expires it. A count that is lost in a failover starts again.
 */

interface RedisRateLimitsOptions {
  /** The caller closes it. */
  client: RedisClient
  /** The prefix of every key, without braces. */
  prefix: string
  timeoutMs?: number
}

const COUNT_TIMEOUT_MS = 250

/** Counts the requests of all processes together. */
export function redisRateLimits({
  client,
  prefix,
  timeoutMs = COUNT_TIMEOUT_MS,
}: RedisRateLimitsOptions): RateLimits {
  const limiter = new RateLimiterRedis({
    ...ANY_POLICY,
    storeClient: client,
    keyPrefix: `${prefix}rate-limit`,
  })
  const limits = flexibleRateLimits(limiter)
  return {
    consume: (key, policies) => orUnavailable(limits.consume(key, policies), timeoutMs),
    charge: (key, policy, count) => orUnavailable(limits.charge(key, policy, count), timeoutMs),
    peek: (key, policies) => orUnavailable(limits.peek(key, policies), timeoutMs),
  }
}

async function orUnavailable<Counts>(counting: Promise<Counts>, timeoutMs: number): Promise<Counts> {
  try {
    return await beforeDeadline(timeoutMs, counting)
  } catch (cause) {
    throw new RateLimitsUnavailableError(`the counts in Redis are unavailable: ${messageOf(cause)}`, {
      cause,
    })
  }
}
