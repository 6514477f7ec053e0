import type { DeliveryId, WebhookId } from '#libs/domain/ids/typeid.js'
import type { DeliveryKey } from '#libs/ports/read-model/projection-store.js'
import type { DeliveryListQuery, DeliveryQueries, DueDeliveries } from '#libs/ports/read-model/queries.js'
import { commit } from '#libs/engines/embedded/lmdb-file/lmdb-file.js'
import { isOver, type DeliveryRow } from '#libs/ports/read-model/views.js'
import type { Delivery } from '#libs/domain/webhook/delivery.js'
import { dueRangeOf, removeDelivery, removeWebhookHealth } from './changes.js'
import { isCatchingUpWith, offsetRange, type DueWebhookKey, type Tables } from './tables.js'

const FIRST_WEBHOOK = 'whk_' as WebhookId
const BEHIND_WEBHOOKS = 'whk_~' as WebhookId
const WEBHOOKS_AT_ONCE = 100
const REMOVED_AT_ONCE = 500

export class LmdbDeliveries implements DeliveryQueries, DueDeliveries {
  private readonly leases = new Leases()

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

  // The port's readers await; this one has nothing to wait for.
  // eslint-disable-next-line @typescript-eslint/require-await
  async *dueWebhooks(now: Date): AsyncIterable<readonly WebhookId[]> {
    if (isCatchingUpWith(this.tables, 'webhook-events')) return
    const end: DueWebhookKey = [now.getTime(), BEHIND_WEBHOOKS]
    let start: DueWebhookKey = [0, FIRST_WEBHOOK]
    for (;;) {
      // A page begins with the last key of the one before: a read must not stay open while others write.
      const keys = [...this.tables.dueWebhooks.getKeys({ start, end, limit: WEBHOOKS_AT_ONCE })]
      yield keys.map(([, id]) => id)
      const last = keys.at(-1)
      if (last === undefined || keys.length < WEBHOOKS_AT_ONCE) return
      start = last
    }
  }

  claimOf(
    webhookId: WebhookId,
    { now, leaseMs, limit }: { now: Date; leaseMs: number; limit: number },
  ): Promise<DeliveryRow[]> {
    if (isCatchingUpWith(this.tables, 'webhook-events')) return Promise.resolve([])
    const nowMs = now.getTime()
    this.leases.forgetOver(nowMs)
    const rows = this.dueOf(webhookId, nowMs, limit)
    for (const { delivery } of rows) this.leases.take(delivery, nowMs + leaseMs)
    return Promise.resolve(rows)
  }

  earliestDue(): Promise<Date | null> {
    const [first] = this.tables.dueWebhooks.getKeys({ limit: 1 })
    return Promise.resolve(first === undefined ? null : new Date(first[0]))
  }

  async removeOld(before: Date): Promise<number> {
    let count = 0
    for (const webhookId of [...this.tables.webhookHealth.getKeys({})]) {
      let removed = REMOVED_AT_ONCE
      while (removed === REMOVED_AT_ONCE) {
        removed = await commit(this.tables.root, () => {
          const old = oldestOf(this.tables, webhookId).filter((row) => isOver(row, before))
          for (const row of old) removeDelivery(this.tables, row)
          return old.length
        })
        count += removed
      }
    }
    return count
  }

  private dueOf(webhookId: WebhookId, untilMs: number, most: number): DeliveryRow[] {
    const rows: DeliveryRow[] = []
    if (most <= 0) return rows
    for (const [, dueAtMs, id] of this.tables.dueDeliveries.getKeys(dueRangeOf(webhookId, untilMs))) {
      if (this.leases.has(id, dueAtMs, untilMs)) continue
      const row = this.tables.deliveries.get([webhookId, id])
      if (row !== undefined) rows.push(row)
      if (rows.length === most) break
    }
    return rows
  }
}

/**
 * Removes the deliveries of a partition's webhooks, and all else that they have, a little at a time. A webhook's health
 * goes last: killed midway, the next process finds the rest.
 */
export async function removeWebhooksOf(tables: Tables, partition: number): Promise<void> {
  const ids: WebhookId[] = []
  for (const { key, value } of tables.webhookHealth.getRange({}))
    if (value.partition === partition) ids.push(key)
  for (const id of ids) {
    let isMore = true
    while (isMore) {
      isMore = await commit(tables.root, () => {
        const oldest = oldestOf(tables, id)
        for (const row of oldest) removeDelivery(tables, row)
        if (oldest.length === REMOVED_AT_ONCE) return true
        removeWebhookHealth(tables, id)
        return false
      })
    }
  }
}

function oldestOf(tables: Tables, webhookId: WebhookId): DeliveryRow[] {
  const oldest = offsetRange([webhookId], { order: 'asc', from: 0, to: Infinity, limit: REMOVED_AT_ONCE })
  const ids = tables.deliveryOrder.getRange(oldest)
  return [...ids].flatMap(({ value }) => tables.deliveries.get([webhookId, value]) ?? [])
}

interface Lease {
  untilMs: number
  dueAtMs: number | undefined
}

/** Of one attempt each. One process holds the folder, so nobody else need know of them. */
class Leases {
  private readonly leases = new Map<DeliveryId, Lease>()

  take({ id, dueAt }: Delivery, untilMs: number): void {
    this.leases.delete(id)
    this.leases.set(id, { untilMs, dueAtMs: dueAt?.getTime() })
  }

  has(id: DeliveryId, dueAtMs: number, nowMs: number): boolean {
    const lease = this.leases.get(id)
    return lease?.dueAtMs === dueAtMs && lease.untilMs > nowMs
  }

  /** Forgets those that are over, as far as they end in their order: to look at each takes long where many run. */
  forgetOver(nowMs: number): void {
    for (const [id, { untilMs }] of this.leases) {
      if (untilMs > nowMs) return
      this.leases.delete(id)
    }
  }
}
