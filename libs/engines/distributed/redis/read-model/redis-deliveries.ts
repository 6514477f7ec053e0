import { answersOf } from '#libs/engines/distributed/redis/client/answer.js'
import type { RedisClient } from '#libs/engines/distributed/redis/client/redis-client.js'
import { Script } from '#libs/engines/distributed/redis/client/script.js'
import type { DeliveryId, WebhookId } from '#libs/domain/ids/typeid.js'
import type { DeliveryKey } from '#libs/ports/read-model/projection-store.js'
import type { DeliveryListQuery, DeliveryQueries, DueDeliveries } from '#libs/ports/read-model/queries.js'
import { isOver, type DeliveryRow } from '#libs/ports/read-model/views.js'
import { pageByOffset, reach, reachEvery, webhooksIn } from './lists.js'
import type { ViewKeys } from './keys.js'
import type { Tables } from './rows.js'

const TOPIC = 'webhook-events'
const WEBHOOKS_AT_ONCE = 500
const REMOVED_AT_ONCE = 500

/** Deliveries among many processes: who leases one in its partition's script has it. Leases end by the callers' clocks. */
export class RedisDeliveries implements DeliveryQueries, DueDeliveries {
  constructor(
    private readonly client: RedisClient,
    private readonly keys: ViewKeys,
    private readonly tables: Tables,
  ) {}

  delivery(key: DeliveryKey): Promise<DeliveryRow | null> {
    return this.tables.deliveries.get(key)
  }

  listDeliveries({ webhookId, state, ...range }: DeliveryListQuery): Promise<DeliveryRow[]> {
    const { client, keys } = this
    const list = state === null ? keys.deliveryOrder(webhookId) : keys.deliveriesIn(webhookId, state)
    return pageByOffset(client, list, range, async (ids) => {
      const keys = ids.map((id) => ({ webhookId, deliveryId: id as DeliveryId }))
      const rows = await this.tables.deliveries.getAll(keys)
      return rows.filter((row) => row !== null)
    })
  }

  /** The first pages of all partitions at once, then their second ones. */
  async *dueWebhooks(now: Date): AsyncIterable<readonly WebhookId[]> {
    let partitions = this.keys.everyPartition
    for (let seen = 0; partitions.length > 0; seen += WEBHOOKS_AT_ONCE) {
      const pages = await Promise.all(partitions.map((partition) => this.dueIn(partition, now, seen)))
      yield pages.flat()
      partitions = partitions.filter((_, index) => pages[index]?.length === WEBHOOKS_AT_ONCE)
    }
  }

  async claimOf(
    webhookId: WebhookId,
    { now, leaseMs, limit }: { now: Date; leaseMs: number; limit: number },
  ): Promise<DeliveryRow[]> {
    const { client, keys } = this
    const partition = keys.partitionOf(webhookId)
    const all = [
      keys.slot({ topic: TOPIC, partition }),
      keys.dueWebhooks(partition),
      keys.dueDeliveries(webhookId),
      keys.deliveries(webhookId),
    ]
    const args = [webhookId, now.getTime(), now.getTime() + leaseMs, limit]
    const rows = (await reach(() => CLAIM_DUE.runForBytes(client, all, args))) as (Buffer | null)[]
    return rows.filter((bytes) => bytes !== null).map((bytes) => this.tables.deliveries.decode(bytes))
  }

  async earliestDue(): Promise<Date | null> {
    const { client, keys } = this
    const firsts = await reachEvery(keys, (partition) =>
      client.zrange(keys.dueWebhooks(partition), '0', '0', 'WITHSCORES'),
    )
    const times = firsts.flatMap(([, dueAtMs]) => (dueAtMs === undefined ? [] : [Number(dueAtMs)]))
    return times.length === 0 ? null : new Date(Math.min(...times))
  }

  async removeOld(before: Date): Promise<number> {
    let count = 0
    for await (const webhookId of webhooksIn(this.client, this.keys)) {
      count += await this.removeOldOf(webhookId, before)
    }
    return count
  }

  /** What leads to them goes last: killed midway, the next one finds the rest. */
  private async removeOldOf(webhookId: WebhookId, before: Date): Promise<number> {
    const { client, keys } = this
    for (let count = 0; ;) {
      const range = { webhookId, state: null, order: 'asc', from: 0, to: Number.MAX_SAFE_INTEGER } as const
      const oldest = await this.listDeliveries({ ...range, limit: REMOVED_AT_ONCE })
      const old = oldest
        .filter((row) => isOver(row, before))
        .map(({ delivery: { id, state } }) => ({ id, state }))
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

  private async dueIn(partition: number, now: Date, seen: number): Promise<WebhookId[]> {
    const keys = [this.keys.slot({ topic: TOPIC, partition }), this.keys.dueWebhooks(partition)]
    const args = [now.getTime(), seen, WEBHOOKS_AT_ONCE]
    return (await reach(() => DUE_WEBHOOKS.run(this.client, keys, args))) as WebhookId[]
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
