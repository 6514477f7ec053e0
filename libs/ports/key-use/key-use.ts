import type { KeyId } from '#libs/domain/ids/typeid.js'
import { Repetition } from '#libs/runtime/timing/repetition.js'

/**
 * When each key was used last. No event: nothing follows from it, and there would be one for each request. It is not
 * in the views either, which are rebuilt from events. A process that dies takes the last second of it along.
 */
export abstract class KeyUse {
  /** Returns at once: it is stored within a second or two, and shown by this process at once. */
  abstract touch(keyId: KeyId, at: Date): void
  /** Without keys that were never used. Errors: `ReadModelUnavailableError`. */
  abstract lastUsedAt(keyIds: readonly KeyId[]): Promise<Map<KeyId, Date>>
  /** Resolves once what was touched is stored, or could not be. */
  abstract close(): Promise<void>
}

/** Where it is stored. Errors: `ReadModelUnavailableError`. */
export interface KeyUseStore {
  /** Resolves once they are seen by everyone. A time that is not later than the one stored changes nothing. */
  put(uses: ReadonlyMap<KeyId, Date>): Promise<void>
  get(keyIds: readonly KeyId[]): Promise<Map<KeyId, Date>>
}

const STORE_EVERY_MS = 1_000

/** Gathers uses off the way of requests and stores them together. */
export class GatheredKeyUse implements KeyUse {
  /** As many as there are keys in use; kept where they can't be stored. */
  private pending = new Map<KeyId, Date>()
  /** On their way to the store. */
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
    // Held before the look: what is stored meanwhile is in one of the three.
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
