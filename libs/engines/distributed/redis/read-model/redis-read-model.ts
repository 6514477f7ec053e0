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
 * Relies on: Redis 7 that evicts nothing (`maxmemory-policy noeviction`), else views lose keys without saying so. A
 * script is applied as a whole, also on replicas and in the append-only file, and a full memory refuses one before its
 * first write, unless that is a removal. A Redis that loses its last second, or is restored from an older copy, goes back with all of a
 * partition's keys, position included, since they lie in one slot: the projector goes on from there. Content expires
 * some time after its inbox, and nothing else does.
 */

interface RedisReadModelOptions {
  /** Both stay the caller's, who closes them; `bulk` carries what may be as large as a mail. */
  client: RedisClient
  bulk: RedisClient
  /** Begins every key; without braces, which would replace the hash tag. */
  prefix: string
  /** Of inbox-events. */
  partitions: number
}

/** Views in a Redis that was checked. What it holds shows when it is asked. */
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
