import type { DeliveryId, WebhookId } from '#libs/domain/ids/typeid.js'
import { answersOf, reach } from '#libs/engines/distributed/redis/client/answer.js'
import type { RedisClient } from '#libs/engines/distributed/redis/client/redis-client.js'
import { Script } from '#libs/engines/distributed/redis/client/script.js'
import type { DeliveryListQuery, DeliveryQueries, DueDeliveries } from '#libs/ports/read-model/queries.js'
import { isOver, type DeliveryRow } from '#libs/ports/read-model/views.js'
import { pageByOffset, reachEvery, webhooksIn } from './lists.js'
import type { ViewKeys } from './keys.js'
import type { Tables } from './rows.js'

const WEBHOOKS_AT_ONCE = 500
const REMOVED_AT_ONCE = 500

/** Deliveries among many processes: each is leased by the script of its partition. Leases end by the callers' clocks. */
export function redisDeliveries(
  client: RedisClient,
  keys: ViewKeys,
  tables: Tables,
): DeliveryQueries & DueDeliveries {
  const slotOf = (partition: number) => keys.slot({ topic: 'webhook-events', partition })

  return {
    delivery: (key) => tables.deliveries.get(key),

    listDeliveries,

    /** The first pages of all partitions at once, then their second ones. */
    async *dueWebhooks(now) {
      let partitions = keys.everyPartition
      for (let seen = 0; partitions.length > 0; seen += WEBHOOKS_AT_ONCE) {
        const args = [now.getTime(), seen, WEBHOOKS_AT_ONCE]
        const pages = (await Promise.all(
          partitions.map((partition) =>
            reach(() => DUE_WEBHOOKS.run(client, [slotOf(partition), keys.dueWebhooks(partition)], args)),
          ),
        )) as WebhookId[][]
        yield pages.flat()
        partitions = partitions.filter((_, index) => pages[index]?.length === WEBHOOKS_AT_ONCE)
      }
    },

    async claimOf(webhookId, { now, leaseMs, limit }) {
      const partition = keys.partitionOf(webhookId)
      const all = [
        slotOf(partition),
        keys.dueWebhooks(partition),
        keys.dueDeliveries(webhookId),
        keys.deliveries(webhookId),
      ]
      const args = [webhookId, now.getTime(), now.getTime() + leaseMs, limit]
      const rows = (await reach(() => CLAIM_DUE.runForBytes(client, all, args))) as (Buffer | null)[]
      return rows.filter((bytes) => bytes !== null).map((bytes) => tables.deliveries.decode(bytes))
    },

    async earliestDue() {
      const firsts = await reachEvery(keys, (partition) =>
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

  /** What leads to them goes last: killed midway, the next one finds the rest. */
  async function removeOldOf(webhookId: WebhookId, before: Date): Promise<number> {
    const range = { webhookId, state: null, order: 'asc', from: 0, to: Number.MAX_SAFE_INTEGER } as const
    for (let count = 0; ;) {
      const oldest = await listDeliveries({ ...range, limit: REMOVED_AT_ONCE })
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
 * Webhooks that may have something due (the second key), earliest first; none if the slot (the first) is catching
 * up. Arguments: now, how many to leave out, how many.
 */
const DUE_WEBHOOKS = new Script(`
local position, target = unpack(redis.call('HMGET', KEYS[1], 'position', 'target'))
if not position or tonumber(position) < tonumber(target) then return {} end
return redis.call('ZRANGE', KEYS[2], '-inf', ARGV[1], 'BYSCORE', 'LIMIT', ARGV[2], ARGV[3])
`)

/**
 * Leases what is due of one webhook, earliest first, by making it due at the lease's end, and answers the rows.
 * Keys: the slot, webhooks by what is due, the webhook's due deliveries, its rows. Arguments: webhook, now, the lease's
 * end, most of them.
 */
const CLAIM_DUE = new Script(`
local position, target = unpack(redis.call('HMGET', KEYS[1], 'position', 'target'))
if not position or tonumber(position) < tonumber(target) then return {} end
local ids = redis.call('ZRANGE', KEYS[3], '-inf', ARGV[2], 'BYSCORE', 'LIMIT', 0, ARGV[4])
local rows = {}
if #ids > 0 then rows = redis.call('HMGET', KEYS[4], unpack(ids)) end
for _, id in ipairs(ids) do redis.call('ZADD', KEYS[3], ARGV[3], id) end
local earliest = redis.call('ZRANGE', KEYS[3], 0, 0, 'WITHSCORES')
if earliest[2] then redis.call('ZADD', KEYS[2], earliest[2], ARGV[1]) else redis.call('ZREM', KEYS[2], ARGV[1]) end
return rows
`)
