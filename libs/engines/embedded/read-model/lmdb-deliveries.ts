import type { DeliveryId, WebhookId } from '#libs/domain/ids/typeid.js'
import type { DeliveryKey } from '#libs/ports/read-model/projection-store.js'
import type {
  DeliveryListQuery,
  DeliveryQueries,
  DueClaim,
  DueDeliveries,
} from '#libs/ports/read-model/queries.js'
import type { DeliveryRow } from '#libs/ports/read-model/views.js'
import type { Delivery } from '#libs/domain/webhook/delivery.js'
import { isCatchingUpWith } from './catching-up.js'
import { dueRangeOf, removeOldDeliveries } from './delivery-changes.js'
import type { DueWebhookKey, Tables } from './tables.js'

const FIRST_WEBHOOK = 'whk_' as WebhookId
const BEHIND_WEBHOOKS = 'whk_~' as WebhookId
/** Webhooks that a claim is shared out among, earliest first: it looks through no more of them. */
const MAX_IN_TURN = 1_000
const ASKED_AT_ONCE = 100

export class LmdbDeliveries implements DeliveryQueries, DueDeliveries {
  private readonly leases = new Leases()
  private readonly turns = new Turns()

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

  async claimDue({ now, leaseMs, limit, capacityOf }: DueClaim): Promise<DeliveryRow[]> {
    if (isCatchingUpWith(this.tables, 'webhook-events')) return []
    const nowMs = now.getTime()
    this.leases.forgetOver(nowMs)
    const due = await this.dueWithCapacity(nowMs, capacityOf)
    const some = this.turns.inTurn(due, ({ id }) => id).slice(0, limit)
    const claimed: DeliveryRow[] = []
    for (const [index, { id, most }] of some.entries()) {
      const share = Math.ceil((limit - claimed.length) / (some.length - index))
      const wanted = Math.min(share, most)
      const rows = this.dueOf(id, nowMs, wanted)
      this.turns.had(id, rows.length === wanted)
      for (const { delivery } of rows) this.leases.take(delivery, nowMs + leaseMs)
      claimed.push(...rows)
    }
    return claimed
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

  private async dueWithCapacity(
    nowMs: number,
    capacityOf: DueClaim['capacityOf'],
  ): Promise<{ id: WebhookId; most: number }[]> {
    const found: { id: WebhookId; most: number }[] = []
    let ids: WebhookId[] = []
    const ask = async () => {
      const capacities = await capacityOf(ids)
      found.push(
        ...ids.map((id, index) => ({ id, most: capacities[index] ?? 0 })).filter(({ most }) => most > 0),
      )
      ids = []
    }
    for (const [, id] of this.dueWebhooks(nowMs)) {
      ids.push(id)
      if (ids.length < ASKED_AT_ONCE) continue
      await ask()
      if (found.length >= MAX_IN_TURN) return found
      // Whatever else the process does goes on in between.
      await new Promise(setImmediate)
    }
    await ask()
    return found
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

/** Beyond it all are as new. */
const MAX_REMEMBERED = 50_000

/** Whose turn it is where more is due than is claimed at once. */
class Turns {
  private readonly lastOf = new Map<WebhookId, number>()
  private turn = 0

  /** Those first that had no turn for longest; among those that had none, in the order in which they came. */
  inTurn<Due>(due: readonly Due[], idOf: (each: Due) => WebhookId): Due[] {
    const lastOf = (each: Due) => this.lastOf.get(idOf(each)) ?? 0
    return due.toSorted((one, other) => lastOf(one) - lastOf(other))
  }

  /** One that has had all that was due to it is as new when there is something again. */
  had(id: WebhookId, isMoreDue: boolean): void {
    if (this.lastOf.size >= MAX_REMEMBERED) this.lastOf.clear()
    this.turn += 1
    if (isMoreDue) this.lastOf.set(id, this.turn)
    else this.lastOf.delete(id)
  }
}
