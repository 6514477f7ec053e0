import type { DeliveryId } from '#libs/domain/ids/typeid.js'
import type { Delivery } from '#libs/domain/webhook/delivery.js'

interface Lease {
  untilMs: number
  dueAtMs: number | undefined
}

/** Of one attempt each. One process holds the folder, so nobody else need know of them. */
export class Leases {
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
