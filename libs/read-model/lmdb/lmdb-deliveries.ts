import type { DeliveryId, WebhookId } from '#libs/typeid/typeid.js'
import type { DeliveryKey } from '../projection-store.js'
import type { DeliveryListQuery, DeliveryQueries, DueClaim, DueDeliveries } from '../queries.js'
import type { DeliveryRow } from '../views.js'
import { isCatchingUpWith } from './catching-up.js'
import { dueRangeOf, removeOldDeliveries } from './delivery-changes.js'
import type { DueWebhookKey, Tables } from './tables.js'

const FIRST_WEBHOOK = 'whk_' as WebhookId
const BEHIND_WEBHOOKS = 'whk_~' as WebhookId

interface Lease {
  untilMs: number
  dueAtMs: number | undefined
}

export class LmdbDeliveries implements DeliveryQueries, DueDeliveries {
  /** Of one attempt each. One process holds the folder, so nobody else need know of them. */
  private readonly leases = new Map<DeliveryId, Lease>()

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

  claimDue({ now, leaseMs, limit, room }: DueClaim): Promise<DeliveryRow[]> {
    if (isCatchingUpWith(this.tables, 'webhook-events')) return Promise.resolve([])
    const nowMs = now.getTime()
    for (const [id, { untilMs }] of this.leases) if (untilMs <= nowMs) this.leases.delete(id)
    const claimed: DeliveryRow[] = []
    for (const [, webhookId] of this.dueWebhooks(nowMs)) {
      const most = Math.min(room(webhookId), limit - claimed.length)
      for (const row of this.dueOf(webhookId, nowMs, most)) {
        this.leases.set(row.delivery.id, { untilMs: nowMs + leaseMs, dueAtMs: row.delivery.dueAt?.getTime() })
        claimed.push(row)
      }
      if (claimed.length >= limit) break
    }
    return Promise.resolve(claimed)
  }

  earliestDue(): Promise<Date | null> {
    const [first] = this.tables.dueWebhooks.getKeys({ limit: 1 })
    return Promise.resolve(first === undefined ? null : new Date(first[0]))
  }

  removeOld(before: Date): Promise<number> {
    return removeOldDeliveries(this.tables, before)
  }

  private dueWebhooks(untilMs: number): Iterable<DueWebhookKey> {
    return this.tables.dueWebhooks.getKeys({ start: [0, FIRST_WEBHOOK], end: [untilMs, BEHIND_WEBHOOKS] })
  }

  private dueOf(webhookId: WebhookId, untilMs: number, most: number): DeliveryRow[] {
    const rows: DeliveryRow[] = []
    if (most <= 0) return rows
    for (const [, dueAtMs, id] of this.tables.dueDeliveries.getKeys(dueRangeOf(webhookId, untilMs))) {
      if (this.leases.get(id)?.dueAtMs === dueAtMs) continue
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
