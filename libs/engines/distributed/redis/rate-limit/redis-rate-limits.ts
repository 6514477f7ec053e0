import type { RedisClient } from '#libs/engines/distributed/redis/client/redis-client.js'
import { Script } from '#libs/engines/distributed/redis/client/script.js'
import { messageOf } from '#libs/runtime/errors.js'
import { beforeDeadline } from '#libs/runtime/timing.js'
import {
  rateLimits,
  RateLimitsUnavailableError,
  type RateLimits,
} from '#libs/ports/rate-limit/rate-limits.js'

/*
 * Relies on Redis's clock and expiry, and on atomic scripts. Each count is a key that expires at the end of its window; in a
 * Cluster, those of a group are in one slot. One script call counts a request. A count that is lost in a failover starts
 * again.
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
  return rateLimits(async ({ group, own, amount }) => {
    const all = group === null ? own : [group, ...own]
    const keys = all.map(({ name }) => `${prefix}rate-limit:${name}`)
    const quotas = all.flatMap(({ limit, windowSeconds }) => [limit, windowSeconds])
    try {
      const counting = COUNT.run(client, keys, [amount, all.length - own.length, ...quotas])
      const reply = await beforeDeadline(timeoutMs, counting)
      const [isAllowed, ...numbers] = Array.isArray(reply) ? reply.map(Number) : []
      const counts = all.map((_, index) => ({
        used: numbers[2 * index] ?? 0,
        msLeft: numbers[2 * index + 1] ?? 0,
      }))
      return { isAllowed: isAllowed === 1, counts }
    } catch (cause) {
      throw new RateLimitsUnavailableError(`the counts in Redis are unavailable: ${messageOf(cause)}`, {
        cause,
      })
    }
  })
}

/**
 * KEYS: the counts, first that of the group, if there is one. ARGV: the amount, how many of KEYS are a group's (0 or 1), and
 * for each key its limit and the seconds of its window.
 */
const COUNT = new Script(`
local groups = tonumber(ARGV[2])
local used = {}
local chosen = nil
for n, key in ipairs(KEYS) do
  used[n] = tonumber(redis.call('GET', key) or 0)
  local isBelow = used[n] < tonumber(ARGV[2 * n + 1])
  if n <= groups and not isBelow then break end
  if n > groups and isBelow and not chosen then chosen = n end
end
local reply = { chosen and 1 or 0 }
for n, key in ipairs(KEYS) do
  used[n] = used[n] or tonumber(redis.call('GET', key) or 0)
  if chosen and tonumber(ARGV[1]) > 0 and (n <= groups or n == chosen) then
    if used[n] == 0 then redis.call('SET', key, ARGV[1], 'EX', ARGV[2 * n + 2])
    else redis.call('INCRBY', key, ARGV[1]) end
    used[n] = used[n] + ARGV[1]
  end
  reply[2 * n] = used[n]
  reply[2 * n + 1] = redis.call('PTTL', key)
end
return reply
`)
