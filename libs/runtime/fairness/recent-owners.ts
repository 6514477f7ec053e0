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

  /** Whether no other owner has used it within that time, a minute by default. */
  isAlone(owner: string, nowMs: number, withinMs = RECENT_MS): boolean {
    const rival = this.latest?.owner === owner ? this.other : this.latest
    return rival === null || nowMs - rival.atMs > withinMs
  }
}
