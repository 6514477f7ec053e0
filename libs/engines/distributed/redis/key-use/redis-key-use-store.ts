import type { KeyId } from '#libs/domain/ids/typeid.js'
import { ReadModelUnavailableError } from '#libs/ports/read-model/queries.js'
import { answerOf, answersOf } from '#libs/engines/distributed/redis/client/answer.js'
import type { RedisClient } from '#libs/engines/distributed/redis/client/redis-client.js'
import type { KeyUseStore } from '#libs/ports/key-use/key-use.js'

/*
 * Relies on: Redis 6.2 or later, where `ZADD … GT` never takes a score back, so that instances may write in any order,
 * and late. One sorted set has every key that was ever used; it stands beside the views and is not emptied with them.
 * A Redis that loses everything loses it too: keys then count as unused until they are used again.
 */

const KEYS_AT_ONCE = 500

export class RedisKeyUseStore implements KeyUseStore {
  private readonly key: string

  /** The client stays the caller's, who closes it. */
  constructor(
    private readonly client: RedisClient,
    prefix: string,
  ) {
    this.key = `${prefix}key-use`
  }

  async put(uses: ReadonlyMap<KeyId, Date>): Promise<void> {
    const all = [...uses]
    for (let at = 0; at < all.length; at += KEYS_AT_ONCE) {
      const members = all.slice(at, at + KEYS_AT_ONCE).flatMap(([keyId, used]) => [used.getTime(), keyId])
      await answerOf(() => this.client.zadd(this.key, 'GT', ...members), unavailable)
    }
  }

  async get(keyIds: readonly KeyId[]): Promise<Map<KeyId, Date>> {
    const found = new Map<KeyId, Date>()
    if (keyIds.length === 0) return found
    const pipeline = this.client.pipeline()
    for (const keyId of keyIds) pipeline.zscore(this.key, keyId)
    const scores = await answerOf(() => answersOf(pipeline), unavailable)
    for (const [index, keyId] of keyIds.entries()) {
      const score = scores[index]
      if (typeof score === 'string') found.set(keyId, new Date(Number(score)))
    }
    return found
  }
}

function unavailable(cause: unknown): ReadModelUnavailableError {
  return new ReadModelUnavailableError('Redis is out of reach', { cause })
}
