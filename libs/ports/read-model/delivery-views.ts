import { brand, type DeliveryId, type ReplayId, type WebhookId } from '#libs/domain/ids/typeid.js'
import type { Delivery } from '#libs/domain/webhook/delivery.js'
import type { Replay } from '#libs/domain/webhook/replay.js'
import { partitionOf } from '#libs/ports/event-log/topics.js'
import { keyRange, pageOfRows, rowOf, type LeaseQuery, type ListQuery, type OffsetQuery } from './lists.js'
import { remove } from './table.js'
import * as tables from './tables.js'
import type { ViewStore } from './view-store.js'
import { isOver, type DeliveryRow } from './views.js'

export interface DeliveryKey {
  webhookId: WebhookId
  deliveryId: DeliveryId
}

export interface ReplayKey {
  webhookId: WebhookId
  replayId: ReplayId
}

export interface DeliveryListQuery extends OffsetQuery {
  webhookId: WebhookId
  /** Null for every state. */
  state: Delivery['state'] | null
}

const MAX_REMOVED_AT_ONCE = 500

/** Queries and leases of deliveries (webhook-events). */
export function deliveryViews(store: ViewStore) {
  return {
    delivery: (key: DeliveryKey): Promise<DeliveryRow | null> =>
      rowOf(store, tables.deliveries, tables.deliveryKey(key)),

    /** In the order of their requests. Fewer than the limit only if the range has no more. */
    listDeliveries({ webhookId, state, ...query }: DeliveryListQuery): Promise<DeliveryRow[]> {
      const range = { ...query, partition: partitionOf(webhookId, store.partitions) }
      return state === null
        ? pageOfRows(store, tables.deliveryOrder, tables.deliveries, { ...range, group: [webhookId] })
        : pageOfRows(store, tables.deliveryStates, tables.deliveries, { ...range, group: [webhookId, state] })
    },

    /** Since when a webhook's attempts have failed; null if the last one succeeded. */
    async failingSince(webhookId: WebhookId): Promise<Date | null> {
      const health = await rowOf(store, tables.webhookHealth, { owner: null, key: webhookId })
      return health?.failingSince ?? null
    },

    /**
     * Webhooks that may have due deliveries, in pages; a webhook may occur twice. Without partitions that are catching up,
     * since their due deliveries may have been delivered long ago.
     */
    async *dueWebhooks(now: Date): AsyncGenerator<readonly WebhookId[]> {
      for await (const owners of store.dueOwners(tables.dueDeliveries, now.getTime())) {
        yield owners.map((id) => brand('whk', id))
      }
    },

    /** Leases due deliveries of a webhook, earliest first; none if its partition is catching up. */
    async claimOf(webhookId: WebhookId, { now, leaseMs, limit }: LeaseQuery): Promise<DeliveryRow[]> {
      const nowMs = now.getTime()
      const claimed = await store.claim(tables.dueDeliveries, tables.deliveries, {
        ...{ partition: partitionOf(webhookId, store.partitions), group: [webhookId] },
        ...{ nowMs, untilMs: nowMs + leaseMs, limit },
      })
      return claimed.flatMap(({ row }) => row ?? [])
    },

    /** The earliest due time of any attempt, past or future, leased or not; null if there is none. */
    async earliestDue(): Promise<Date | null> {
      const ms = await store.earliestDueMs(tables.dueDeliveries)
      return ms === null ? null : new Date(ms)
    },

    /** Removes deliveries that have ended and were requested before then; resolves with their number. */
    async removeOld(before: Date): Promise<number> {
      let count = 0
      const oldest = { order: 'asc', from: null, to: null, limit: MAX_REMOVED_AT_ONCE } as const
      for await (const webhookId of webhooksIn(store)) {
        const partition = partitionOf(webhookId, store.partitions)
        const range = { ...oldest, partition, group: [webhookId] }
        for (let removed = Infinity; removed > 0;) {
          const rows = await pageOfRows(store, tables.deliveryOrder, tables.deliveries, range)
          const old = rows.filter((row) => isOver(row, before)).map((row) => remove(tables.deliveries, row))
          await store.write({ topic: 'webhook-events', partition }, old)
          removed = old.length
          count += removed
        }
      }
      return count
    },
  }
}

/** Queries and leases of replays (webhook-events). Those with more deliveries to request are leased in turn. */
export function replayViews(store: ViewStore) {
  /** The partition of the last attempt to claim a replay. */
  let partition = 0

  const replay = (key: ReplayKey): Promise<Replay | null> =>
    rowOf(store, tables.replays, tables.replayKey(key))

  function listReplays(webhookId: WebhookId, query: ListQuery<string>): Promise<Replay[]> {
    const range = keyRange(partitionOf(webhookId, store.partitions), [webhookId], query)
    return pageOfRows(store, tables.replayList, tables.replays, range)
  }

  return {
    replay,

    /** Ordered by id, which is the order of their requests. */
    listReplays,

    /** Leases the replay that has made the fewest steps; null if there is none. Ignores partitions that are catching up. */
    async claimReplay({ now, leaseMs }: Omit<LeaseQuery, 'limit'>): Promise<Replay | null> {
      const nowMs = now.getTime()
      const claim = { group: [], nowMs, untilMs: nowMs + leaseMs, limit: 1 }
      for (let tried = 0; tried < store.partitions; tried += 1) {
        partition = (partition + 1) % store.partitions
        const [claimed] = await store.claim(tables.pendingReplays, null, { ...claim, partition })
        if (claimed === undefined) continue
        const { key, value } = claimed.entry
        return replay({ webhookId: brand('whk', value), replayId: brand('rpl', key) })
      }
      return null
    },

    /** Ends the lease of a replay as it was claimed. It may be claimed again from that time on. */
    async releaseReplay(claimed: Replay, at: Date): Promise<void> {
      const ofWebhook = partitionOf(claimed.webhookId, store.partitions)
      for (const entry of tables.pendingReplays.entriesOf(claimed)) {
        await store.release(tables.pendingReplays, ofWebhook, entry, at.getTime())
      }
    },

    /** Removes replays that were requested before then, completed or not; resolves with their number. */
    async removeOldReplays(before: Date): Promise<number> {
      let count = 0
      for await (const webhookId of webhooksIn(store)) {
        const all = await listReplays(webhookId, { order: 'asc', after: null, limit: Infinity })
        const old = all
          .filter(({ requestedAt }) => requestedAt < before)
          .map((row) => remove(tables.replays, row))
        const ofWebhook = partitionOf(webhookId, store.partitions)
        await store.write({ topic: 'webhook-events', partition: ofWebhook }, old)
        count += old.length
      }
      return count
    },
  }
}

/** Every webhook with deliveries or replays. An id may be yielded twice. */
async function* webhooksIn(store: ViewStore): AsyncGenerator<WebhookId> {
  for await (const keys of store.keysOf(tables.webhookHealth)) yield* keys.map((key) => brand('whk', key))
}
