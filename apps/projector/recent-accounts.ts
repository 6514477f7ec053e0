import type { AccountId } from '#libs/domain/ids/typeid.js'

interface Seen {
  accountId: AccountId
  atMs: number
}

const RECENT_MS = 60_000

/** Whose mail was read of late: where an account is alone, what its mail costs delays nobody else's. */
export class RecentAccounts {
  private latest: Seen | null = null
  /** The latest of another account than that. */
  private other: Seen | null = null

  see(accountId: AccountId, nowMs: number): void {
    if (this.latest?.accountId !== accountId) this.other = this.latest
    this.latest = { accountId, atMs: nowMs }
  }

  /** Whether no other account had mail within the last minute. */
  isAlone(accountId: AccountId, nowMs: number): boolean {
    const rival = this.latest?.accountId === accountId ? this.other : this.latest
    return rival === null || nowMs - rival.atMs > RECENT_MS
  }
}
