import type { RedisClient } from '#libs/engines/distributed/redis/client/redis-client.js'
import type { ReadModel } from '#libs/ports/read-model/queries.js'
import { viewKeys } from './keys.js'
import { accountQueries } from './redis-accounts.js'
import { redisDeliveries } from './redis-deliveries.js'
import { dueInboxes } from './redis-due.js'
import { inboxQueries } from './redis-inbox-queries.js'
import { projectionStore } from './redis-projection-store.js'
import { redisReplays } from './redis-replays.js'
import { tablesIn } from './rows.js'

/*
 * Relies on Redis 7 with `maxmemory-policy noeviction`, since views would lose keys unnoticed otherwise. A script is applied
 * as a whole, also on replicas and in the append-only file. With full memory, Redis rejects a script before its first
 * write, unless that is a removal. If Redis loses its last second, or is restored from an older copy, all keys of a
 * partition go back together, including its position, because they are in one slot of a Cluster. The projector continues
 * from there. Only content expires, some time after its inbox.
 */

interface RedisReadModelOptions {
  /** The caller closes both. `bulk` is used for values as large as a mail. */
  client: RedisClient
  bulk: RedisClient
  /** The prefix of every key. Must have no braces, which would replace the hash tag. */
  prefix: string
  /** The number of partitions of inbox-events. */
  partitions: number
}

/** The views in Redis. Sends no command until it is used. */
export function redisReadModel({ client, bulk, prefix, partitions }: RedisReadModelOptions): ReadModel {
  const keys = viewKeys(prefix, partitions)
  const tables = tablesIn(client, keys)
  const accounts = accountQueries(client, keys, tables)
  return {
    store: projectionStore(client, bulk, keys, tables),
    queries: { ...inboxQueries(client, bulk, keys, tables), ...dueInboxes(client, keys) },
    accounts,
    webhooks: accounts,
    deliveries: redisDeliveries(client, keys, tables),
    replays: redisReplays(client, keys, tables),
  }
}
