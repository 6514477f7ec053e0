import type { Account, ApiKey } from '#libs/domain/account/account.js'
import type { Views } from '../http/views.js'

/** A key as the views have it, with its account. */
export interface KnownKey {
  account: Account
  key: ApiKey
}

interface Look {
  /** In milliseconds of a clock that never goes back. */
  beganAtMs: number
  found: Promise<KnownKey | null>
}

/** However many signals are lost: what was changed is in force everywhere after that. */
const OLDEST_MS = 500
const MAX_LOOKS = 10_000

/**
 * Looks keys up by the hash of a secret, and remembers what was found for a moment, so that a busy key costs two looks
 * a second and not several for each request. What is not found is looked up each time: a new key works at once.
 */
export class KnownKeys {
  /** In the order of their beginning, which is that of their end. */
  private readonly looks = new Map<string, Look>()

  constructor(private readonly views: Pick<Views, 'accounts' | 'readComplete'>) {}

  /**
   * Null if no key ever had such a secret. Throws catching-up if that, or whether the key has been revoked since,
   * can't be told; rejects as the views do.
   */
  find(secretHash: string): Promise<KnownKey | null> {
    const nowMs = performance.now()
    const remembered = this.looks.get(secretHash)
    if (remembered !== undefined && nowMs - remembered.beganAtMs < OLDEST_MS) return remembered.found
    const found = this.views.readComplete('account-events', () => this.views.accounts.keyByHash(secretHash))
    const look: Look = { beganAtMs: nowMs, found }
    this.looks.delete(secretHash)
    this.looks.set(secretHash, look)
    this.dropOldest(nowMs)
    const forget = () => {
      if (this.looks.get(secretHash) === look) this.looks.delete(secretHash)
    }
    found.then((known) => {
      if (known === null) forget()
    }, forget)
    return found
  }

  /** To be called when something of an account or a key has changed. */
  forgetAll(): void {
    this.looks.clear()
  }

  private dropOldest(nowMs: number): void {
    for (const [secretHash, { beganAtMs }] of this.looks) {
      if (this.looks.size <= MAX_LOOKS && nowMs - beganAtMs < OLDEST_MS) return
      this.looks.delete(secretHash)
    }
  }
}
