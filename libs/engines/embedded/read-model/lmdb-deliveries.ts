import type { WebhookId } from '#libs/domain/ids/typeid.js'
import type { DeliveryKey } from '#libs/ports/read-model/projection-store.js'
import type { DeliveryListQuery, DeliveryQueries, DueDeliveries } from '#libs/ports/read-model/queries.js'
import { commit } from '#libs/engines/embedded/lmdb-file/lmdb-file.js'
import { isOver, type DeliveryRow } from '#libs/ports/read-model/views.js'
import { dueRangeOf, removeDelivery, removeWebhookHealth } from './changes.js'
import { ALL_OFFSETS, isCatchingUpWith, offsetRange, type DueWebhookKey, type Tables } from './tables.js'

const FIRST_WEBHOOK = 'whk_' as WebhookId
const BEHIND_WEBHOOKS = 'whk_~' as WebhookId
const WEBHOOKS_AT_ONCE = 100
const REMOVED_AT_ONCE = 500

export class LmdbDeliveries implements DeliveryQueries, DueDeliveries {
  /**
   * When the lease of an attempt ends, by delivery and due time, in the order of leasing. One process holds the folder,
   * so no other one needs to know.
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
    this.forgetEndedLeases(nowMs)
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
    for (const webhookId of [...this.tables.webhookHealth.getKeys({})]) {
      count += await removeDeliveries(this.tables, webhookId, (row) => isOver(row, before))
    }
    return count
  }

  /** Stops at the first that has not ended: looking at each takes long when many are leased. */
  private forgetEndedLeases(nowMs: number): void {
    for (const [attempt, endsAtMs] of this.leases) {
      if (endsAtMs > nowMs) return
      this.leases.delete(attempt)
    }
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
    await removeDeliveries(tables, id, () => true)
    await commit(tables.root, () => removeWebhookHealth(tables, id))
  }
}

/**
 * Removes deliveries of a webhook, REMOVED_AT_ONCE in each transaction, oldest first. Stops when fewer of the oldest are
 * to be removed. Resolves with how many it removed.
 */
async function removeDeliveries(
  tables: Tables,
  webhookId: WebhookId,
  shouldRemove: (row: DeliveryRow) => boolean,
): Promise<number> {
  const oldest = offsetRange([webhookId], { ...ALL_OFFSETS, limit: REMOVED_AT_ONCE })
  let count = 0
  for (;;) {
    const removed = await commit(tables.root, () => {
      const ids = [...tables.deliveryOrder.getRange(oldest)].map(({ value }) => value)
      const rows = ids.flatMap((id) => tables.deliveries.get([webhookId, id]) ?? []).filter(shouldRemove)
      for (const row of rows) removeDelivery(tables, row)
      return rows.length
    })
    count += removed
    if (removed < REMOVED_AT_ONCE) return count
  }
}
