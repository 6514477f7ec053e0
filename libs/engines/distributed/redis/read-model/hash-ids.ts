import type { RedisClient } from '#libs/engines/distributed/redis/client/redis-client.js'
import { reach } from './reach.js'

/** The ids that a hash has rows for, about `count` at a time; one may come twice. */
export async function* idsIn<Id extends string>(
  client: RedisClient,
  hash: string,
  count: number,
): AsyncGenerator<Id[]> {
  let cursor = '0'
  do {
    const [next, fields] = await reach(() => client.hscan(hash, cursor, 'COUNT', count))
    // It answers a row behind each id.
    yield fields.filter((_, index) => index % 2 === 0) as Id[]
    cursor = next
  } while (cursor !== '0')
}
