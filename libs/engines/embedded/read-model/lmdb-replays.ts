import type { ReplayId, WebhookId } from '#libs/domain/ids/typeid.js'
import type { Replay } from '#libs/domain/webhook/replay.js'
import type { ReplayKey } from '#libs/ports/read-model/projection-store.js'
import type { ReplayLeases, ListQuery, ReplayQueries } from '#libs/ports/read-model/queries.js'
import { commit } from '#libs/engines/embedded/lmdb-file/lmdb-file.js'
import { chunksOf } from '#libs/runtime/chunks.js'
import { removeReplay } from './changes.js'
import { idRange, isCatchingUpWith, type ReplayRowKey, type Tables } from './tables.js'

const MAX_REMOVED_AT_ONCE = 500

export class LmdbReplays implements ReplayQueries, ReplayLeases {
  /** When each lease ends. Kept in memory, because one process uses the folder. */
  private readonly leasedUntil = new Map<ReplayId, number>()

  /** The replays that had no lease when all were last read. The one that has waited longest is the last. */
  private claimable: ReplayRowKey[] = []

  constructor(private readonly tables: Tables) {}

  replay({ webhookId, replayId }: ReplayKey): Promise<Replay | null> {
    return Promise.resolve(this.tables.replays.get([webhookId, replayId]) ?? null)
  }

  listReplays(webhookId: WebhookId, query: ListQuery<ReplayId>): Promise<Replay[]> {
    const listed = this.tables.replays.getRange(idRange([webhookId], 'rpl', query))
    return Promise.resolve([...listed].map(({ value }) => value))
  }

  claimReplay({ now, leaseMs }: { now: Date; leaseMs: number }): Promise<Replay | null> {
    const nowMs = now.getTime()
    if (isCatchingUpWith(this.tables, 'webhook-events')) return Promise.resolve(null)
    const key = this.nextClaimable(nowMs) ?? this.findClaimable(nowMs)
    if (key === null) return Promise.resolve(null)
    const [webhookId, replayId] = key
    this.leasedUntil.set(replayId, nowMs + leaseMs)
    return this.replay({ webhookId, replayId })
  }

  releaseReplay({ webhookId, replayId }: ReplayKey, at: Date): Promise<void> {
    if (this.tables.pendingReplays.doesExist([webhookId, replayId]))
      this.leasedUntil.set(replayId, at.getTime())
    else this.leasedUntil.delete(replayId)
    return Promise.resolve()
  }

  async removeOldReplays(before: Date): Promise<number> {
    const { root, replays } = this.tables
    const old: ReplayRowKey[] = []
    for (const { key, value } of replays.getRange({})) if (value.requestedAt < before) old.push(key)
    for (const some of chunksOf(old, MAX_REMOVED_AT_ONCE)) {
      await commit(root, () => {
        for (const key of some) removeReplay(this.tables, key)
      })
    }
    return old.length
  }

  private nextClaimable(nowMs: number): ReplayRowKey | null {
    for (let key = this.claimable.pop(); key !== undefined; key = this.claimable.pop()) {
      if (this.leasedUntilMs(key) <= nowMs && this.tables.pendingReplays.doesExist(key)) return key
    }
    return null
  }

  /** Reads all replays. All that are claimable are kept for the next claims, since there may be many. */
  private findClaimable(nowMs: number): ReplayRowKey | null {
    const pending = [...this.tables.pendingReplays.getKeys({})]
    const ids = new Set(pending.map(([, id]) => id))
    for (const id of this.leasedUntil.keys()) if (!ids.has(id)) this.leasedUntil.delete(id)
    this.claimable = pending
      .filter((key) => this.leasedUntilMs(key) <= nowMs)
      .sort((one, other) => this.leasedUntilMs(other) - this.leasedUntilMs(one))
    return this.nextClaimable(nowMs)
  }

  private leasedUntilMs([, replayId]: ReplayRowKey): number {
    return this.leasedUntil.get(replayId) ?? 0
  }
}
