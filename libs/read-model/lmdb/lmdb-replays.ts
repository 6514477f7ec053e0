import type { ReplayId, WebhookId } from '#libs/typeid/typeid.js'
import type { Replay } from '#libs/webhook/replay.js'
import type { ReplayKey } from '../projection-store.js'
import type { AskingReplays, ListQuery, ReplayQueries } from '../queries.js'
import { isCatchingUpWith } from './catching-up.js'
import { removeOldReplays } from './replay-changes.js'
import { replayRangeOf, type Tables } from './tables.js'

export class LmdbReplays implements ReplayQueries, AskingReplays {
  /** From when on each may be claimed again. One process holds the folder, so nobody else need know of them. */
  private readonly freeFrom = new Map<ReplayId, number>()

  constructor(private readonly tables: Tables) {}

  replay({ webhookId, replayId }: ReplayKey): Promise<Replay | null> {
    return Promise.resolve(this.tables.replays.get([webhookId, replayId]) ?? null)
  }

  listReplays(webhookId: WebhookId, { order, after, limit }: ListQuery<ReplayId>): Promise<Replay[]> {
    const { start, end } = replayRangeOf(webhookId)
    const [from, to] = order === 'asc' ? [start, end] : [end, start]
    const options = { limit, reverse: order === 'desc', exclusiveStart: true }
    const begin: typeof from = after === null ? from : [webhookId, after]
    const found = this.tables.replays.getRange({ start: begin, end: to, ...options })
    return Promise.resolve([...found].map(({ value }) => value))
  }

  claimReplay({ now, leaseMs }: { now: Date; leaseMs: number }): Promise<Replay | null> {
    const nowMs = now.getTime()
    if (isCatchingUpWith(this.tables, 'webhook-events')) return Promise.resolve(null)
    let earliest: { key: [WebhookId, ReplayId]; ms: number } | null = null
    for (const key of this.tables.askingReplays.getKeys({})) {
      const ms = this.freeFrom.get(key[1]) ?? 0
      if (ms <= nowMs && (earliest === null || ms < earliest.ms)) earliest = { key, ms }
    }
    if (earliest === null) return Promise.resolve(null)
    const [webhookId, replayId] = earliest.key
    this.freeFrom.set(replayId, nowMs + leaseMs)
    return this.replay({ webhookId, replayId })
  }

  releaseReplay({ webhookId, replayId }: ReplayKey, at: Date): Promise<void> {
    if (this.tables.askingReplays.doesExist([webhookId, replayId])) this.freeFrom.set(replayId, at.getTime())
    else this.freeFrom.delete(replayId)
    return Promise.resolve()
  }

  removeOldReplays(before: Date): Promise<number> {
    return removeOldReplays(this.tables, before)
  }
}
