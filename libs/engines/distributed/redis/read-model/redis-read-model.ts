import type { RedisClient } from '#libs/engines/distributed/redis/client/redis-client.js'
import type { ReadModel } from '#libs/ports/read-model/queries.js'
import { ViewKeys } from './keys.js'
import { RedisAccounts } from './redis-accounts.js'
import { RedisDeliveries } from './redis-deliveries.js'
import { RedisDueInboxes } from './redis-due.js'
import { RedisInboxQueries } from './redis-inbox-queries.js'
import { RedisProjectionStore } from './redis-projection-store.js'
import { RedisReplays } from './redis-replays.js'

/*
 * Relies on: Redis 7 that evicts nothing (`maxmemory-policy noeviction`), else views lose keys without saying so. A
 * script is applied as a whole, also on replicas and in the append-only file, and a full memory refuses one before its
 * first write, unless that is a removal. A Redis that loses its last second, or is restored from an older copy, goes back with all of a
 * partition's keys, position included, since they lie in one slot: the projector goes on from there. Content expires
 * some time after its inbox, and nothing else does.
 */

export interface RedisReadModelOptions {
  /** Both stay the caller's, who closes them; `bulk` carries what may be as large as a mail. */
  client: RedisClient
  bulk: RedisClient
  /** Begins every key; without braces, which would take the place of the hash tag. */
  prefix: string
  /** Of inbox-events. */
  partitions: number
}

/** Views in a Redis that was checked. What it holds shows when it is asked. */
export function redisReadModel({ client, bulk, prefix, partitions }: RedisReadModelOptions): ReadModel {
  const keys = new ViewKeys(prefix, partitions)
  const inboxes = new RedisInboxQueries(client, bulk, keys)
  const due = new RedisDueInboxes(client, keys)
  const accounts = new RedisAccounts(client, keys)
  return {
    store: new RedisProjectionStore(client, bulk, keys),
    queries: {
      progress: (partition) => inboxes.progress(partition),
      inbox: (id) => inboxes.inbox(id),
      inboxIdAt: (address) => inboxes.inboxIdAt(address),
      listInboxes: (query) => inboxes.listInboxes(query),
      message: (key) => inboxes.message(key),
      listMessages: (query) => inboxes.listMessages(query),
      body: (key) => inboxes.body(key),
      raw: (key) => inboxes.raw(key),
      history: (query) => inboxes.history(query),
      leaseDue: (now, limit) => due.leaseDue(now, limit),
      countActive: () => due.countActive(),
    },
    accounts,
    webhooks: accounts,
    deliveries: new RedisDeliveries(client, keys),
    replays: new RedisReplays(client, keys),
  }
}
