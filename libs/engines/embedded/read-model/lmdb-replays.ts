import type { ReplayId, WebhookId } from '#libs/domain/ids/typeid.js'
import type { Replay } from '#libs/domain/webhook/replay.js'
import type { ReplayKey } from '#libs/ports/read-model/projection-store.js'
import type { ReplayLeases, ListQuery, ReplayQueries } from '#libs/ports/read-model/queries.js'
import { commit } from '#libs/engines/embedded/lmdb-file/lmdb-file.js'
import { removeReplay } from './changes.js'
import { idRange, isCatchingUpWith, type ReplayRowKey, type Tables } from './tables.js'

const REMOVED_AT_ONCE = 500

export class LmdbReplays implements ReplayQueries, ReplayLeases {
  /** When each may be claimed again. One process holds the folder, so no other one needs to know. */
  private readonly freeFrom = new Map<ReplayId, number>()

  /** Those that were free when all were last looked at; the one that had waited longest is the last. */
  private free: ReplayRowKey[] = []

  constructor(private readonly tables: Tables) {}

  replay({ webhookId, replayId }: ReplayKey): Promise<Replay | null> {
    return Promise.resolve(this.tables.replays.get([webhookId, replayId]) ?? null)
  }

  listReplays(webhookId: WebhookId, query: ListQuery<ReplayId>): Promise<Replay[]> {
    const listed = this.tables.replays.getRange(idRange([webhookId], 'rpl_' as ReplayId, query))
    return Promise.resolve([...listed].map(({ value }) => value))
  }

  claimReplay({ now, leaseMs }: { now: Date; leaseMs: number }): Promise<Replay | null> {
    const nowMs = now.getTime()
    if (isCatchingUpWith(this.tables, 'webhook-events')) return Promise.resolve(null)
    const key = this.nextFree(nowMs) ?? this.lookForFree(nowMs)
    if (key === null) return Promise.resolve(null)
    const [webhookId, replayId] = key
    this.freeFrom.set(replayId, nowMs + leaseMs)
    return this.replay({ webhookId, replayId })
  }

  releaseReplay({ webhookId, replayId }: ReplayKey, at: Date): Promise<void> {
    if (this.tables.askingReplays.doesExist([webhookId, replayId])) this.freeFrom.set(replayId, at.getTime())
    else this.freeFrom.delete(replayId)
    return Promise.resolve()
  }

  async removeOldReplays(before: Date): Promise<number> {
    const { root, replays } = this.tables
    const old: ReplayRowKey[] = []
    for (const { key, value } of replays.getRange({})) if (value.requestedAt < before) old.push(key)
    for (let at = 0; at < old.length; at += REMOVED_AT_ONCE) {
      await commit(root, () => {
        for (const key of old.slice(at, at + REMOVED_AT_ONCE)) removeReplay(this.tables, key)
      })
    }
    return old.length
  }

  private nextFree(nowMs: number): ReplayRowKey | null {
    for (let key = this.free.pop(); key !== undefined; key = this.free.pop()) {
      if (this.freeFromMs(key) <= nowMs && this.tables.askingReplays.doesExist(key)) return key
    }
    return null
  }

  /** Looks at all replays. One look serves as many claims as it finds free ones: any number of them may wait. */
  private lookForFree(nowMs: number): ReplayRowKey | null {
    const asking = [...this.tables.askingReplays.getKeys({})]
    const ids = new Set(asking.map(([, id]) => id))
    for (const id of this.freeFrom.keys()) if (!ids.has(id)) this.freeFrom.delete(id)
    this.free = asking
      .filter((key) => this.freeFromMs(key) <= nowMs)
      .sort((one, other) => this.freeFromMs(other) - this.freeFromMs(one))
    return this.nextFree(nowMs)
  }

  private freeFromMs([, replayId]: ReplayRowKey): number {
    return this.freeFrom.get(replayId) ?? 0
  }
}
