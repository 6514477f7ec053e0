import { LRUCache } from 'lru-cache'
import type { InboxId } from '#libs/domain/ids/typeid.js'
import type { MasterKeys, WrappedKey } from './master-key.js'
import type { SecretKey } from './seal.js'

interface KeyAtHand {
  wrapped: Uint8Array
  key: SecretKey
  /** When the view last said that the inbox has this key. */
  confirmedAt: number
}

const MAX_AT_HAND = 10_000
/** So long at most a process still opens with a key that another has forgotten. */
const SERVED_FOR_MS = 2_000

/** The keys that were found last: to unwrap one costs more than to seal a mail with it. */
export class KeysAtHand {
  private readonly keys = new LRUCache<InboxId, KeyAtHand>({ max: MAX_AT_HAND })

  constructor(
    private readonly masterKeys: MasterKeys,
    private readonly now: () => Date,
  ) {}

  /** Null if the view must be asked. */
  get(inboxId: InboxId): SecretKey | null {
    const found = this.keys.get(inboxId)
    if (found === undefined) return null
    const age = this.now().getTime() - found.confirmedAt
    return age >= 0 && age < SERVED_FOR_MS ? found.key : null
  }

  /** Opens what the view has just said to be the inbox's key. Throws as `MasterKeys.unwrap` does. */
  unwrap(inboxId: InboxId, wrapped: WrappedKey): SecretKey {
    const found = this.keys.get(inboxId)
    const isSame = found !== undefined && Buffer.compare(found.wrapped, wrapped.wrapped) === 0
    const key = isSame ? found.key : this.masterKeys.unwrap(inboxId, wrapped)
    this.keys.set(inboxId, { wrapped: wrapped.wrapped, key, confirmedAt: this.now().getTime() })
    return key
  }

  drop(inboxId: InboxId): void {
    this.keys.delete(inboxId)
  }
}
