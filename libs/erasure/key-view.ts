import type { PartitionRange } from '#libs/event-log/event-log.js'
import type { InboxId } from '#libs/typeid/typeid.js'
import type { WrappedKey } from './master-key.js'

export type KeyEntry = WrappedKey | 'forgotten'

/** One move of a partition of the view along inbox-keys. */
export interface KeyStep {
  partition: number
  from: number
  to: number
  /** In the order of the log. */
  entries: readonly (readonly [InboxId, KeyEntry])[]
}

/**
 * What is known of inbox keys, where it is found quickly. The topic inbox-keys is the truth; each partition of the
 * view says up to where it has certainly been applied. An entry once made is replaced by `forgotten` alone, which
 * nothing replaces.
 *
 * Errors: KeyVaultUnavailableError where the view is out of reach.
 */
export interface KeyView {
  /** Null where the view knows nothing of the key. */
  find(inboxId: InboxId): Promise<KeyEntry | null>
  /** Resolves with what stands there afterwards: what was there before, or this key. */
  add(inboxId: InboxId, key: WrappedKey): Promise<KeyEntry>
  forget(inboxIds: readonly InboxId[]): Promise<void>
  /**
   * Resolves with the offset to go on from; a partition that followed another log is emptied first. One that stands
   * past the range's end is left as it is, with where it stands: another process may have followed records that came
   * since the range was looked up. It is emptied where it still stands at the `aheadAt` handed in, with a range looked
   * up since: then its log has lost its end.
   */
  begin(logId: string, range: PartitionRange, aheadAt?: number): Promise<number | { aheadAt: number }>
  /** Compare and set: applies entries and position together where the partition stands at `from`; else nothing. */
  apply(step: KeyStep): Promise<boolean>
  /** Any key that was wrapped and not forgotten; null where there is none. */
  anyWrapped(): Promise<WrappedKey | null>
}
