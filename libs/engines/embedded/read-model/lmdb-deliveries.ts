import type { WebhookId } from '#libs/domain/ids/typeid.js'
import type { DeliveryKey } from '#libs/ports/read-model/projection-store.js'
import type { DeliveryListQuery, DeliveryQueries, DueDeliveries } from '#libs/ports/read-model/queries.js'
import { commit } from '#libs/engines/embedded/lmdb-file/lmdb-file.js'
import { isOver, type DeliveryRow } from '#libs/ports/read-model/views.js'
import { dueRangeOf, removeDelivery, removeWebhookHealth } from './changes.js'
import {
  afterIds,
  ALL_OFFSETS,
  beforeIds,
  isCatchingUpWith,
  offsetRange,
  type DueWebhookKey,
  type Tables,
} from './tables.js'

const WEBHOOKS_PER_PAGE = 100
const MAX_REMOVED_AT_ONCE = 500

export class LmdbDeliveries implements DeliveryQueries, DueDeliveries {
  /**
   * When the lease of an attempt ends, by delivery and due time, in the order of leasing. Kept in memory, because one
   * process uses the folder.
   */
  private readonly leases = new Map<string, number>()

  constructor(private readonly tables: Tables) {}

  delivery({ webhookId, deliveryId }: DeliveryKey): Promise<DeliveryRow | null> {
    return Promise.resolve(this.tables.deliveries.get([webhookId, deliveryId]) ?? null)
  }

  listDeliveries({ webhookId, state, ...range }: DeliveryListQuery): Promise<DeliveryRow[]> {
    const { deliveries, deliveryOrder, deliveryStates } = this.tables
    const listed =
      state === null
        ? deliveryOrder.getRange(offsetRange([webhookId], range))
        : deliveryStates.getRange(offsetRange([webhookId, state], range))
    return Promise.resolve([...listed].flatMap(({ value }) => deliveries.get([webhookId, value]) ?? []))
  }

  // The port's method is asynchronous, but LMDB reads synchronously.
  // eslint-disable-next-line @typescript-eslint/require-await
  async *dueWebhooks(now: Date): AsyncIterable<readonly WebhookId[]> {
    if (isCatchingUpWith(this.tables, 'webhook-events')) return
    const end: DueWebhookKey = [now.getTime(), afterIds('whk')]
    let start: DueWebhookKey = [0, beforeIds('whk')]
    for (;;) {
      // Each page begins with the last key of the previous one. A read must not stay open during writes.
      const keys = [...this.tables.dueWebhooks.getKeys({ start, end, limit: WEBHOOKS_PER_PAGE })]
      yield keys.map(([, id]) => id)
      const last = keys.at(-1)
      if (last === undefined || keys.length < WEBHOOKS_PER_PAGE) return
      start = last
    }
  }

  claimOf(
    webhookId: WebhookId,
    { now, leaseMs, limit }: { now: Date; leaseMs: number; limit: number },
  ): Promise<DeliveryRow[]> {
    if (isCatchingUpWith(this.tables, 'webhook-events')) return Promise.resolve([])
    const nowMs = now.getTime()
    this.removeEndedLeases(nowMs)
    const rows: DeliveryRow[] = []
    for (const [, dueAtMs, id] of this.tables.dueDeliveries.getKeys(dueRangeOf(webhookId, nowMs))) {
      if (rows.length >= limit) break
      const attempt = `${id} ${dueAtMs}`
      if ((this.leases.get(attempt) ?? 0) > nowMs) continue
      const row = this.tables.deliveries.get([webhookId, id])
      if (row === undefined) continue
      rows.push(row)
      this.leases.delete(attempt)
      this.leases.set(attempt, nowMs + leaseMs)
    }
    return Promise.resolve(rows)
  }

  earliestDue(): Promise<Date | null> {
    const [first] = this.tables.dueWebhooks.getKeys({ limit: 1 })
    return Promise.resolve(first === undefined ? null : new Date(first[0]))
  }

  async removeOld(before: Date): Promise<number> {
    let count = 0
    for (const { webhookId, partition } of webhooksIn(this.tables)) {
      count += await removeDeliveries(this.tables, partition, webhookId, (row) => isOver(row, before))
    }
    return count
  }

  /** Stops at the first lease that has not ended, because reading all of them takes long if there are many. */
  private removeEndedLeases(nowMs: number): void {
    for (const [attempt, endsAtMs] of this.leases) {
      if (endsAtMs > nowMs) return
      this.leases.delete(attempt)
    }
  }
}

/**
 * Removes the deliveries and all other rows of a partition's webhooks, in many transactions. A webhook's health is removed
 * last, so that the next process finds the rest if this one is killed midway.
 */
export async function removeWebhooksOf(tables: Tables, partition: number): Promise<void> {
  for (const { webhookId } of webhooksIn(tables).filter((row) => row.partition === partition)) {
    await removeDeliveries(tables, partition, webhookId, () => true)
    await commit(tables.root, () => removeWebhookHealth(tables, webhookId))
  }
}

/** All webhooks that have had a delivery or a replay. */
function webhooksIn({ webhookHealth }: Tables): { webhookId: WebhookId; partition: number }[] {
  return [...webhookHealth.getRange({})].map(({ value: { webhookId, partition } }) => ({
    webhookId,
    partition,
  }))
}

/**
 * Removes deliveries of a webhook, oldest first, up to MAX_REMOVED_AT_ONCE in each transaction. Ends with the first
 * transaction that removes fewer. Resolves with the number of deliveries removed.
 */
async function removeDeliveries(
  tables: Tables,
  partition: number,
  webhookId: WebhookId,
  shouldRemove: (row: DeliveryRow) => boolean,
): Promise<number> {
  const oldest = offsetRange([webhookId], { ...ALL_OFFSETS, limit: MAX_REMOVED_AT_ONCE })
  let count = 0
  for (;;) {
    const removed = await commit(tables.root, () => {
      const ids = [...tables.deliveryOrder.getRange(oldest)].map(({ value }) => value)
      const rows = ids.flatMap((id) => tables.deliveries.get([webhookId, id]) ?? []).filter(shouldRemove)
      for (const row of rows) removeDelivery(tables, partition, row)
      return rows.length
    })
    count += removed
    if (removed < MAX_REMOVED_AT_ONCE) return count
  }
}
