import { setImmediate as nextTurn } from 'node:timers/promises'
import { largeCache } from '#libs/runtime/large-cache.js'
import type { WebhookId } from '#libs/domain/ids/typeid.js'
import { chunksOf } from '#libs/runtime/chunks.js'
import type { DeliveryQueries } from './queries.js'
import type { DeliveryRow } from './views.js'

export interface DueClaim {
  now: Date
  /** How long the claimed deliveries are leased. The outcome of each attempt must be on the log by then. */
  leaseMs: number
  limit: number
  /** How many more deliveries of each webhook may be claimed; 0 if it was already called for that webhook. */
  capacityOf: (webhookIds: readonly WebhookId[]) => Promise<readonly number[]>
}

interface Share {
  id: WebhookId
  /** How many more deliveries may be claimed. */
  capacity: number
}

/** Webhooks with capacity that one claim considers. */
const MAX_WEBHOOKS = 1_000
const CAPACITY_BATCH = 100
/** Webhooks whose last turns are remembered. Others count as never served. */
const MAX_REMEMBERED = 50_000

/**
 * Claims due deliveries fairly: each webhook with due deliveries gets the same share of a claim. If there are more
 * webhooks than deliveries to claim, those that have waited longest are served first. Each process remembers turns
 * separately.
 */
export class DueClaims {
  private readonly lastTurns = largeCache<WebhookId, number>(MAX_REMEMBERED)
  private turn = 0

  constructor(private readonly deliveries: Pick<DeliveryQueries, 'dueWebhooks' | 'claimOf'>) {}

  /** Returns the claimed deliveries, those of each webhook in order of their due times. */
  async claim(claim: DueClaim): Promise<DeliveryRow[]> {
    const claimed: DeliveryRow[] = []
    let sharing = this.byLastTurn(await this.findShares(claim)).slice(0, claim.limit)
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
      // Shares that were not used up are given to webhooks with more due deliveries.
      sharing = among.flatMap(({ id, capacity }, index) => {
        const count = rows[index]?.length ?? 0
        const isMoreDue = count === Math.min(share, capacity)
        this.recordTurn(id, isMoreDue)
        return isMoreDue && capacity > count ? [{ id, capacity: capacity - count }] : []
      })
    }
    return claimed
  }

  private async findShares({ now, capacityOf }: DueClaim): Promise<Share[]> {
    const found: Share[] = []
    for await (const page of this.deliveries.dueWebhooks(now)) {
      for (const ids of chunksOf(page, CAPACITY_BATCH)) {
        const capacities = await capacityOf(ids)
        const shares = ids.map((id, index) => ({ id, capacity: capacities[index] ?? 0 }))
        found.push(...shares.filter(({ capacity }) => capacity > 0))
        if (found.length >= MAX_WEBHOOKS) return found
        if (ids.length === CAPACITY_BATCH) await nextTurn()
      }
    }
    return found
  }

  /** Sorts by last turn, oldest first. Webhooks that were never served keep their order. */
  private byLastTurn(shares: readonly Share[]): Share[] {
    const lastTurn = ({ id }: Share) => this.lastTurns.get(id) ?? 0
    return shares.toSorted((one, other) => lastTurn(one) - lastTurn(other))
  }

  /** A webhook with no more due deliveries counts as never served when it has some again. */
  private recordTurn(id: WebhookId, isMoreDue: boolean): void {
    this.turn += 1
    if (isMoreDue) this.lastTurns.set(id, this.turn)
    else this.lastTurns.delete(id)
  }
}
