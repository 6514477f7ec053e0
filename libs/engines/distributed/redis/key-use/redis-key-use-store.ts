import { answersOf, reach } from '#libs/engines/distributed/redis/client/answer.js'
import type { RedisClient } from '#libs/engines/distributed/redis/client/redis-client.js'
import type { KeyUseStore } from '#libs/ports/key-use/key-use.js'
import { chunksOf } from '#libs/runtime/chunks.js'

/*
 * Relies on Redis 6.2 or later, where `ZADD … GT` never lowers a score, so that instances may write in any order. One sorted
 * set has every key that was ever used. It is separate from the views, and not removed when they are emptied. If Redis
 * loses it, keys count as unused until they are used again.
 */

const KEYS_AT_ONCE = 500

/** The caller closes the client. */
export function redisKeyUseStore(client: RedisClient, prefix: string): KeyUseStore {
  const key = `${prefix}key-use`
  return {
    async put(uses) {
      for (const chunk of chunksOf([...uses], KEYS_AT_ONCE)) {
        const members = chunk.flatMap(([keyId, used]) => [used.getTime(), keyId])
        await reach(() => client.zadd(key, 'GT', ...members))
      }
    },

    async get(keyIds) {
      if (keyIds.length === 0) return new Map()
      const pipeline = client.pipeline()
      for (const keyId of keyIds) pipeline.zscore(key, keyId)
      const scores = await reach(() => answersOf(pipeline))
      const found = keyIds.map((keyId, index) => [keyId, scores[index]] as const)
      return new Map(
        found.flatMap(([keyId, score]) =>
          typeof score === 'string' ? [[keyId, new Date(Number(score))]] : [],
        ),
      )
    },
  }
}
