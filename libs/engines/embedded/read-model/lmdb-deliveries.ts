import type { DeliveryId, WebhookId } from '#libs/domain/ids/typeid.js'
import type { DeliveryKey } from '#libs/ports/read-model/projection-store.js'
import type { DeliveryListQuery, DeliveryQueries, DueDeliveries } from '#libs/ports/read-model/queries.js'
import type { DeliveryRow } from '#libs/ports/read-model/views.js'
import type { Delivery } from '#libs/domain/webhook/delivery.js'
import { isCatchingUpWith } from './catching-up.js'
import { dueRangeOf, removeOldDeliveries } from './delivery-changes.js'
import type { DueWebhookKey, Tables } from './tables.js'

const FIRST_WEBHOOK = 'whk_' as WebhookId
const BEHIND_WEBHOOKS = 'whk_~' as WebhookId
const WEBHOOKS_AT_ONCE = 100

export class LmdbDeliveries implements DeliveryQueries, DueDeliveries {
  private readonly leases = new Leases()

  constructor(private readonly tables: Tables) {}

  delivery({ webhookId, deliveryId }: DeliveryKey): Promise<DeliveryRow | null> {
    return Promise.resolve(this.tables.deliveries.get([webhookId, deliveryId]) ?? null)
  }

  listDeliveries(query: DeliveryListQuery): Promise<DeliveryRow[]> {
    const rows = [...this.idsIn(query)].flatMap(
      (id) => this.tables.deliveries.get([query.webhookId, id]) ?? [],
    )
    return Promise.resolve(rows)
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

  removeOld(before: Date): Promise<number> {
    return removeOldDeliveries(this.tables, before)
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

  private *idsIn({ webhookId, state, order, from, to, limit }: DeliveryListQuery): Iterable<DeliveryId> {
    const [start, end] = order === 'asc' ? [from, to] : [to - 1, from - 1]
    const options = { limit, reverse: order === 'desc' }
    const found =
      state === null
        ? this.tables.deliveryOrder.getRange({ start: [webhookId, start], end: [webhookId, end], ...options })
        : this.tables.deliveryStates.getRange({
            ...{ start: [webhookId, state, start], end: [webhookId, state, end] },
            ...options,
          })
    for (const { value } of found) yield value
  }
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
