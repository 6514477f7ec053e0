import type { KeyId } from '#libs/domain/ids/typeid.js'
import { PeriodicTask } from '#libs/runtime/timing.js'

/** Errors: `ReadModelUnavailableError`. */
export interface KeyUseStore {
  /** Resolves once every process sees the times. A time that is not later than the stored one changes nothing. */
  put(uses: ReadonlyMap<KeyId, Date>): Promise<void>
  get(keyIds: readonly KeyId[]): Promise<Map<KeyId, Date>>
}

const STORE_EVERY_MS = 1_000

/**
 * When each key was last used. Uses are gathered and stored together once a second, so that no request waits for the
 * store. A use is not an event: nothing follows from it, and there would be one for each request. So it is not in the
 * views either, which are rebuilt from events. A process that dies loses the last second of it.
 */
export class KeyUse {
  /** Not stored yet. Kept if the store fails. At most one entry for each key in use. */
  private pending = new Map<KeyId, Date>()
  /** Being stored. */
  private flushing: ReadonlyMap<KeyId, Date> = new Map()
  private readonly storing: PeriodicTask

  constructor(
    private readonly store: KeyUseStore,
    private readonly onError: (error: unknown) => void,
    everyMs = STORE_EVERY_MS,
  ) {
    this.storing = new PeriodicTask({ work: () => this.flush(), everyMs, firstAfterMs: everyMs })
    this.storing.start()
  }

  /** Returns at once. This process shows the use at once, others within a second or two. */
  touch(keyId: KeyId, at: Date): void {
    const before = this.pending.get(keyId)
    if (before === undefined || before < at) this.pending.set(keyId, at)
  }

  /** Has no entry for a key that was never used. Errors: `ReadModelUnavailableError`. */
  async lastUsedAt(keyIds: readonly KeyId[]): Promise<Map<KeyId, Date>> {
    // Read before the store, so that a use that is stored meanwhile is found in at least one of the three.
    const unstored = [this.flushing, this.pending]
    const known = await this.store.get(keyIds)
    for (const uses of unstored) {
      for (const keyId of keyIds) {
        const [stored, at] = [known.get(keyId), uses.get(keyId)]
        if (at !== undefined && (stored === undefined || stored < at)) known.set(keyId, at)
      }
    }
    return known
  }

  /** Resolves once all uses have been stored, or the store has failed. */
  async close(): Promise<void> {
    await this.storing.stop()
    await this.flush()
  }

  private async flush(): Promise<void> {
    if (this.pending.size === 0) return
    const flushing = this.pending
    this.flushing = flushing
    this.pending = new Map()
    try {
      await this.store.put(flushing)
    } catch (error) {
      this.onError(error)
      for (const [keyId, at] of flushing) this.touch(keyId, at)
    } finally {
      this.flushing = new Map()
    }
  }
}
