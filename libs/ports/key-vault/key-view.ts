import { UnavailableError } from '#libs/runtime/errors.js'
import type { InboxId } from '#libs/domain/ids/typeid.js'
import type { WrappedKey } from './master-key.js'

/** What a view says of an inbox's key. "Absent" may yet come to be there. */
export type KeyEntry = { state: 'wrapped'; key: WrappedKey } | { state: 'forgotten' } | { state: 'absent' }

/** How far a partition's view has applied a log. Keys that single calls have put may be ahead of it. */
export interface ViewStanding {
  logId: string
  /** Offset of the first record that has not been applied. */
  next: number
  /** The master key that the applied records say serves new inboxes. */
  masterKeyId: string | null
}

/** What a record of the log says of an inbox's key. */
export interface KeyStatement {
  inboxId: InboxId
  says: Exclude<KeyEntry, { state: 'absent' }>
}

/** Moves a partition's view along the log, with what the records in between say, in their order. */
export interface KeyStep {
  partition: number
  logId: string
  from: number
  to: number
  statements: readonly KeyStatement[]
  /** Null if these records don't say. */
  masterKeyId: string | null
  /** Inboxes whose entry of the view has been appended to the log again, behind these records. */
  settled: ReadonlySet<InboxId>
}

/**
 * Contested: the last of these records about an inbox differs from the view. Compaction leaves the last record, so the
 * view does not move past it until its own entry has been appended behind it.
 */
export type KeyStepOutcome = 'applied' | 'moved' | { contested: readonly KeyStatement[] }

/**
 * What is known of inbox keys, in a fast store. If it is lost or restored from an older copy, it is built again from the
 * log. An inbox's key is in the partition of the inbox's id.
 *
 * A forgotten key stays forgotten. A wrapped key that is in use is never replaced; one that was only read from the log is
 * replaced by a later record, as compaction would. Errors: `KeyViewUnavailableError`.
 */
export interface KeyView {
  /** The standing (null if the view was never begun, or is lost) and an entry for each id, as of one moment. */
  find(
    partition: number,
    inboxIds: readonly InboxId[],
  ): Promise<{ standing: ViewStanding | null; entries: KeyEntry[] }>
  /**
   * Takes a key into use that is durable on the log, unless another is in use or the inbox's was forgotten. Resolves
   * with the entry from then on, and whether the view has had a different one, before or still.
   */
  take(
    partition: number,
    inboxId: InboxId,
    key: WrappedKey,
  ): Promise<{ stands: KeyStatement['says']; wasContested: boolean }>
  /** Replaces each key by `forgotten`, for good. That must be durable on the log already. */
  forget(partition: number, inboxIds: readonly InboxId[]): Promise<void>
  /** Begins to follow a log at an offset, unless the view has moved since. A view of another log is emptied. */
  begin(
    partition: number,
    start: Pick<ViewStanding, 'logId' | 'next'>,
    seen: ViewStanding | null,
  ): Promise<void>
  /** Compare and set: applies all of it if the view of this log is at `from`; otherwise nothing, and gives `moved`. */
  apply(step: KeyStep): Promise<KeyStepOutcome>
}

/** The view does not answer; what it was asked to do may have been done. */
export class KeyViewUnavailableError extends UnavailableError {
  override readonly name = 'KeyViewUnavailableError'
}
