const RECENT_MS = 60_000

/** Knows whether only one owner has used something recently. Then it can't delay another owner. */
export class RecentOwners {
  private latest: { owner: string; atMs: number } | null = null
  /** The latest use by another owner. */
  private other: { owner: string; atMs: number } | null = null

  record(owner: string, nowMs: number): void {
    if (this.latest?.owner !== owner) this.other = this.latest
    this.latest = { owner, atMs: nowMs }
  }

  /** Whether no other owner has used it within a minute. */
  isAlone(owner: string, nowMs: number): boolean {
    const rival = this.latest?.owner === owner ? this.other : this.latest
    return rival === null || nowMs - rival.atMs > RECENT_MS
  }
}
