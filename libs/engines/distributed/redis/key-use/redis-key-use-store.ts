import type { KeyId } from '#libs/domain/ids/typeid.js'
import { answersOf, reach, runsOf } from '#libs/engines/distributed/redis/client/answer.js'
import type { RedisClient } from '#libs/engines/distributed/redis/client/redis-client.js'
import type { KeyUseStore } from '#libs/ports/key-use/key-use.js'

/*
 * Relies on: Redis 6.2 or later, in which `ZADD … GT` never lowers a score, so that instances may write in any order,
 * and late. One sorted set has every key that was ever used; it is apart from the views and is not emptied with them.
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
    for (const run of runsOf([...uses], KEYS_AT_ONCE)) {
      const members = run.flatMap(([keyId, used]) => [used.getTime(), keyId])
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
