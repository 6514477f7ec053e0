import type { InboxId } from '#libs/domain/ids/typeid.js'
import { UnavailableError } from '#libs/runtime/errors.js'
import type { WrappedKey } from './master-key.js'

/** The entry of a view for an inbox's key. An absent key may exist on the log. */
export type KeyEntry = { state: 'wrapped'; key: WrappedKey } | { state: 'forgotten' } | { state: 'absent' }

/** How far a partition's view has applied a log. Entries that `take` and `forget` have written may be ahead of it. */
export interface KeyViewProgress {
  logId: string
  /** Offset of the first record that has not been applied. */
  next: number
  /** The master key for new inboxes, according to the applied records. */
  masterKeyId: string | null
}

export interface KeyStatement {
  inboxId: InboxId
  entry: Exclude<KeyEntry, { state: 'absent' }>
}

/** A step of a partition's view along the log, with the records in between, in order. */
export interface KeyStep {
  partition: number
  logId: string
  from: number
  to: number
  statements: readonly KeyStatement[]
  /** Null if none of these records sets it. */
  masterKeyId: string | null
  /** Inboxes whose entry in the view has been appended to the log again, after these records. */
  settled: ReadonlySet<InboxId>
}

/**
 * Contested: the last of these records about an inbox contradicts the view's entry. Compaction keeps the last record, so
 * the view does not move past it until its own entry has been appended after it. `moved`: the view is not at `from`.
 */
export type KeyStepOutcome = 'applied' | 'moved' | { contested: readonly KeyStatement[] }

/**
 * A view of inbox keys in a fast store. If it is lost or restored from an older copy, it is rebuilt from the log. A key is
 * in the partition of its inbox's id.
 *
 * A forgotten key stays forgotten. A key in use is never replaced. A key that was only read from the log is replaced by
 * a later record, as compaction does. Errors: `KeyViewUnavailableError`.
 */
export interface KeyView {
  /** The progress (null if the view was never begun, or is lost) and an entry for each id, from one snapshot. */
  find(
    partition: number,
    inboxIds: readonly InboxId[],
  ): Promise<{ progress: KeyViewProgress | null; entries: KeyEntry[] }>
  /**
   * Takes a key that is durable on the log into use, unless another key is in use or the key was forgotten. Resolves with
   * the entry from then on, and whether the view had a different one.
   */
  take(
    partition: number,
    inboxId: InboxId,
    key: WrappedKey,
  ): Promise<{ entry: KeyStatement['entry']; wasContested: boolean }>
  /** Replaces each key with `forgotten`, permanently. That must already be durable on the log. */
  forget(partition: number, inboxIds: readonly InboxId[]): Promise<void>
  /** Starts to follow a log at an offset, unless the view's progress is no longer `seen`. Empties a view of another log. */
  begin(
    partition: number,
    start: Pick<KeyViewProgress, 'logId' | 'next'>,
    seen: KeyViewProgress | null,
  ): Promise<void>
  /** Compare and set: applies the whole step if the view is at `from` in this log; otherwise nothing. */
  apply(step: KeyStep): Promise<KeyStepOutcome>
}

/** The view does not respond; a change may have been made nevertheless. */
export class KeyViewUnavailableError extends UnavailableError {}
