import type { KeyId } from '#libs/domain/ids/typeid.js'
import { Repetition } from '#libs/runtime/timing/repetition.js'

/**
 * When each key was last used. It is not an event: nothing follows from it, and there would be one for each request. So
 * it is not in the views either, which are rebuilt from events. A process that dies loses the last second of it.
 */
export abstract class KeyUse {
  /** Returns at once. This process shows it at once, others within a second or two. */
  abstract touch(keyId: KeyId, at: Date): void
  /** Without keys that were never used. Errors: `ReadModelUnavailableError`. */
  abstract lastUsedAt(keyIds: readonly KeyId[]): Promise<Map<KeyId, Date>>
  /** Resolves once all uses are stored, or could not be. */
  abstract close(): Promise<void>
}

/** Errors: `ReadModelUnavailableError`. */
export interface KeyUseStore {
  /** Resolves once every process sees them. A time that is not later than the stored one changes nothing. */
  put(uses: ReadonlyMap<KeyId, Date>): Promise<void>
  get(keyIds: readonly KeyId[]): Promise<Map<KeyId, Date>>
}

const STORE_EVERY_MS = 1_000

/** Gathers uses, so that no request waits for the store, and stores them together. */
export class GatheredKeyUse implements KeyUse {
  /** As many as there are keys in use; kept if they can't be stored. */
  private pending = new Map<KeyId, Date>()
  /** Those that are being stored. */
  private leaving: ReadonlyMap<KeyId, Date> = new Map()
  private readonly storing: Repetition

  constructor(
    private readonly store: KeyUseStore,
    private readonly onError: (error: unknown) => void,
    everyMs = STORE_EVERY_MS,
  ) {
    this.storing = new Repetition({ work: () => this.flush(), everyMs, firstAfterMs: everyMs })
    this.storing.start()
  }

  touch(keyId: KeyId, at: Date): void {
    const before = this.pending.get(keyId)
    if (before === undefined || before < at) this.pending.set(keyId, at)
  }

  async lastUsedAt(keyIds: readonly KeyId[]): Promise<Map<KeyId, Date>> {
    // Taken before the read: what is stored meanwhile is in one of the three.
    const noticedHere = [this.leaving, this.pending]
    const known = await this.store.get(keyIds)
    for (const noticed of noticedHere) {
      for (const keyId of keyIds) {
        const [stored, at] = [known.get(keyId), noticed.get(keyId)]
        if (at !== undefined && (stored === undefined || stored < at)) known.set(keyId, at)
      }
    }
    return known
  }

  async close(): Promise<void> {
    await this.storing.stop()
    await this.flush()
  }

  private async flush(): Promise<void> {
    if (this.pending.size === 0) return
    const leaving = this.pending
    this.leaving = leaving
    this.pending = new Map()
    try {
      await this.store.put(leaving)
    } catch (error) {
      this.onError(error)
      for (const [keyId, at] of leaving) this.touch(keyId, at)
    } finally {
      this.leaving = new Map()
    }
  }
}
