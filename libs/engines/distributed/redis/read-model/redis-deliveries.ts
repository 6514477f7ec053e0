import type { DeliveryId, WebhookId } from '#libs/domain/ids/typeid.js'
import { answersOf, reach } from '#libs/engines/distributed/redis/client/answer.js'
import type { RedisClient } from '#libs/engines/distributed/redis/client/redis-client.js'
import { Script } from '#libs/engines/distributed/redis/client/script.js'
import type { DeliveryListQuery, DeliveryQueries, DueDeliveries } from '#libs/ports/read-model/queries.js'
import { isOver, type DeliveryRow } from '#libs/ports/read-model/views.js'
import { pageByOffset, reachEveryPartition, webhooksIn } from './lists.js'
import type { ViewKeys } from './keys.js'
import { IS_CATCHING_UP, LEASE_DUE } from './redis-due.js'
import type { Tables } from './rows.js'

const WEBHOOKS_PER_PAGE = 500
const MAX_REMOVED_AT_ONCE = 500

/** Deliveries, shared by many processes. A script leases them in their partition. Leases end by the callers' clocks. */
export function redisDeliveries(
  client: RedisClient,
  keys: ViewKeys,
  tables: Tables,
): DeliveryQueries & DueDeliveries {
  const progressKeyOf = (partition: number) => keys.progress({ topic: 'webhook-events', partition })

  return {
    delivery: (key) => tables.deliveries.get(key),

    listDeliveries,

    /** Yields the first pages of all partitions together, then the second ones, and so on. */
    async *dueWebhooks(now) {
      let partitions = keys.everyPartition
      for (let skipped = 0; partitions.length > 0; skipped += WEBHOOKS_PER_PAGE) {
        const args = [now.getTime(), skipped, WEBHOOKS_PER_PAGE]
        const pages = (await Promise.all(
          partitions.map((partition) =>
            reach(() =>
              DUE_WEBHOOKS.run(client, [progressKeyOf(partition), keys.dueWebhooks(partition)], args),
            ),
          ),
        )) as WebhookId[][]
        yield pages.flat()
        partitions = partitions.filter((_, index) => pages[index]?.length === WEBHOOKS_PER_PAGE)
      }
    },

    async claimOf(webhookId, { now, leaseMs, limit }) {
      const partition = keys.partitionOf(webhookId)
      const all = [
        progressKeyOf(partition),
        keys.dueWebhooks(partition),
        keys.dueDeliveries(webhookId),
        keys.deliveries(webhookId),
      ]
      const args = [webhookId, now.getTime(), now.getTime() + leaseMs, limit]
      const rows = (await reach(() => CLAIM_DUE.runForBytes(client, all, args))) as (Buffer | null)[]
      return rows.filter((bytes) => bytes !== null).map((bytes) => tables.deliveries.decode(bytes))
    },

    async earliestDue() {
      const firsts = await reachEveryPartition(keys, (partition) =>
        client.zrange(keys.dueWebhooks(partition), '0', '0', 'WITHSCORES'),
      )
      const times = firsts.flatMap(([, dueAtMs]) => (dueAtMs === undefined ? [] : [Number(dueAtMs)]))
      return times.length === 0 ? null : new Date(Math.min(...times))
    },

    async removeOld(before) {
      let count = 0
      for await (const webhookId of webhooksIn(client, keys)) count += await removeOldOf(webhookId, before)
      return count
    },
  }

  function listDeliveries({ webhookId, state, ...range }: DeliveryListQuery): Promise<DeliveryRow[]> {
    const list = state === null ? keys.deliveryOrder(webhookId) : keys.deliveriesIn(webhookId, state)
    return pageByOffset(client, list, range, async (ids) => {
      const rows = await tables.deliveries.getAll(
        ids.map((id) => ({ webhookId, deliveryId: id as DeliveryId })),
      )
      return rows.filter((row) => row !== null)
    })
  }

  /** The list is changed last, so that the next process finds the rest if this one is killed midway. */
  async function removeOldOf(webhookId: WebhookId, before: Date): Promise<number> {
    const range = { webhookId, state: null, order: 'asc', from: 0, to: Number.MAX_SAFE_INTEGER } as const
    for (let count = 0; ;) {
      const oldest = await listDeliveries({ ...range, limit: MAX_REMOVED_AT_ONCE })
      const old = oldest.filter((row) => isOver(row, before)).map(({ delivery }) => delivery)
      if (old.length === 0) return count
      const pipeline = client.pipeline()
      const ids = old.map(({ id }) => id)
      pipeline.hdel(keys.deliveries(webhookId), ...ids)
      for (const { id, state } of old) pipeline.zrem(keys.deliveriesIn(webhookId, state), id)
      pipeline.zrem(keys.deliveryOrder(webhookId), ...ids)
      await reach(() => answersOf(pipeline))
      count += old.length
    }
  }
}

/**
 * Returns webhooks that may have deliveries due, earliest first; none while the partition is catching up. Keys: progress,
 * webhooks by due time. Arguments: now, number of webhooks to skip, limit.
 */
const DUE_WEBHOOKS = new Script(`${IS_CATCHING_UP}
if isCatchingUp() then return {} end
return redis.call('ZRANGE', KEYS[2], '-inf', ARGV[1], 'BYSCORE', 'LIMIT', ARGV[2], ARGV[3])
`)

/**
 * Leases due deliveries of one webhook, earliest first, and returns their rows; none while the partition is catching up.
 * Keys: progress, webhooks by due time, the webhook's due deliveries, its rows. Arguments: webhook, now, end of the lease,
 * limit.
 */
const CLAIM_DUE = new Script(`${IS_CATCHING_UP}${LEASE_DUE}
if isCatchingUp() then return {} end
local ids = leaseDue(KEYS[3], ARGV[2], ARGV[3], ARGV[4])
local rows = {}
if #ids > 0 then rows = redis.call('HMGET', KEYS[4], unpack(ids)) end
local earliest = redis.call('ZRANGE', KEYS[3], 0, 0, 'WITHSCORES')
if earliest[2] then redis.call('ZADD', KEYS[2], earliest[2], ARGV[1]) else redis.call('ZREM', KEYS[2], ARGV[1]) end
return rows
`)
