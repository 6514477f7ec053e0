import { setImmediate as nextTurn } from 'node:timers/promises'
import { LRUCache } from 'lru-cache'
import type { WebhookId } from '#libs/domain/ids/typeid.js'
import type { DueDeliveries } from './queries.js'
import type { DeliveryRow } from './views.js'

export interface DueClaim {
  now: Date
  /** How long no other caller is given the same: the outcome of each attempt must be on the log by then. */
  leaseMs: number
  limit: number
  /** How many more deliveries of each webhook may be claimed; 0 for a webhook that it was called with before. */
  capacityOf: (webhookIds: readonly WebhookId[]) => Promise<readonly number[]>
}

interface Share {
  id: WebhookId
  /** How many more may be claimed. */
  capacity: number
}

/** Webhooks that one claim looks at, of those that have capacity. */
const MAX_WEBHOOKS = 1_000
const ASKED_AT_ONCE = 100
/** Webhooks whose turns are remembered; any other counts as one that had none. */
const MAX_REMEMBERED = 50_000

/**
 * Claims due deliveries, shared among the webhooks that have some: each webhook has the same share of a claim, and if
 * there are more webhooks than deliveries to claim, those that have waited longest for a turn come first. Each process
 * remembers turns by itself.
 */
export class DueClaims {
  private readonly lastTurns = new LRUCache<WebhookId, number>({ max: MAX_REMEMBERED })
  private turn = 0

  constructor(private readonly deliveries: Pick<DueDeliveries, 'dueWebhooks' | 'claimOf'>) {}

  /** Those of each webhook earliest first. */
  async claim(claim: DueClaim): Promise<DeliveryRow[]> {
    const claimed: DeliveryRow[] = []
    let sharing = this.inTurn(await this.withCapacity(claim)).slice(0, claim.limit)
    while (sharing.length > 0 && claimed.length < claim.limit) {
      const left = claim.limit - claimed.length
      const among = sharing.slice(0, left)
      const share = Math.floor(left / among.length)
      const rows = await Promise.all(
        among.map(({ id, capacity }) =>
          this.deliveries.claimOf(id, { ...claim, limit: Math.min(share, capacity) }),
        ),
      )
      claimed.push(...rows.flat())
      // What some did not need is shared among those that had more due.
      sharing = among.flatMap(({ id, capacity }, index) => {
        const count = rows[index]?.length ?? 0
        const isMoreDue = count === Math.min(share, capacity)
        this.hadTurn(id, isMoreDue)
        return isMoreDue && capacity > count ? [{ id, capacity: capacity - count }] : []
      })
    }
    return claimed
  }

  private async withCapacity({ now, capacityOf }: DueClaim): Promise<Share[]> {
    const found: Share[] = []
    for await (const page of this.deliveries.dueWebhooks(now)) {
      for (let at = 0; at < page.length; at += ASKED_AT_ONCE) {
        const ids = page.slice(at, at + ASKED_AT_ONCE)
        const capacities = await capacityOf(ids)
        const shares = ids.map((id, index) => ({ id, capacity: capacities[index] ?? 0 }))
        found.push(...shares.filter(({ capacity }) => capacity > 0))
        if (found.length >= MAX_WEBHOOKS) return found
        if (ids.length === ASKED_AT_ONCE) await nextTurn()
      }
    }
    return found
  }

  /** Those first that had no turn for longest; among those that had none, in the order in which they came. */
  private inTurn(shares: readonly Share[]): Share[] {
    const lastTurn = ({ id }: Share) => this.lastTurns.get(id) ?? 0
    return shares.toSorted((one, other) => lastTurn(one) - lastTurn(other))
  }

  /** A webhook that has had all that was due counts as new when it has something due again. */
  private hadTurn(id: WebhookId, isMoreDue: boolean): void {
    this.turn += 1
    if (isMoreDue) this.lastTurns.set(id, this.turn)
    else this.lastTurns.delete(id)
  }
}
