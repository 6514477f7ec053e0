import type { KeyId } from '#libs/domain/ids/typeid.js'
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

export class RedisKeyUseStore implements KeyUseStore {
  private readonly key: string

  /** The caller closes the client. */
  constructor(
    private readonly client: RedisClient,
    prefix: string,
  ) {
    this.key = `${prefix}key-use`
  }

  async put(uses: ReadonlyMap<KeyId, Date>): Promise<void> {
    for (const chunk of chunksOf([...uses], KEYS_AT_ONCE)) {
      const members = chunk.flatMap(([keyId, used]) => [used.getTime(), keyId])
      await reach(() => this.client.zadd(this.key, 'GT', ...members))
    }
  }

  async get(keyIds: readonly KeyId[]): Promise<Map<KeyId, Date>> {
    const found = new Map<KeyId, Date>()
    if (keyIds.length === 0) return found
    const pipeline = this.client.pipeline()
    for (const keyId of keyIds) pipeline.zscore(this.key, keyId)
    const scores = await reach(() => answersOf(pipeline))
    for (const [index, keyId] of keyIds.entries()) {
      const score = scores[index]
      if (typeof score === 'string') found.set(keyId, new Date(Number(score)))
    }
    return found
  }
}
