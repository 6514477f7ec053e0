import { UnavailableError } from '#libs/runtime/errors.js'
import type { InboxId } from '#libs/domain/ids/typeid.js'
import type { WrappedKey } from './master-key.js'

/** What a view says of an inbox's key. "Absent" may yet come to be there. */
export type KeyEntry = { state: 'wrapped'; key: WrappedKey } | { state: 'forgotten' } | { state: 'absent' }

/** Up to where a partition's view has certainly applied which log. What single calls have put may be ahead of it. */
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

/** One move of a partition's view along the log, with what the records in between say, in their order. */
export interface KeyStep {
  partition: number
  logId: string
  from: number
  to: number
  statements: readonly KeyStatement[]
  /** Null if these records don't say. */
  masterKeyId: string | null
  /** Inboxes of which the log has been told again, behind these records, what the view holds. */
  settled: ReadonlySet<InboxId>
}

/**
 * Contested: the last of these records about an inbox says something else than the view holds. The view does not
 * move past them, since compaction leaves the last record, until the log has what the view holds behind them.
 */
export type KeyStepOutcome = 'applied' | 'moved' | { contested: readonly KeyStatement[] }

/**
 * What is known of inbox keys, in a fast store. It may be lost or restored from an older copy: it is built again from
 * the log. All of an inbox's key stands in the partition of the inbox's id.
 *
 * A forgotten key stays forgotten. A wrapped key that is in use is not replaced by another; one that only the log has
 * told of is, by a later record, as compaction would.
 *
 * Errors: `KeyViewUnavailableError`.
 */
export interface KeyView {
  /** The standing (null for a view never begun, or lost) and an entry for each id, in order, as of one moment. */
  find(
    partition: number,
    inboxIds: readonly InboxId[],
  ): Promise<{ standing: ViewStanding | null; entries: KeyEntry[] }>
  /**
   * Takes a key into use that is durable on the log, unless another is in use or the inbox's was forgotten. Resolves
   * with what then stands, and whether the view has been of another mind, before or still.
   */
  take(
    partition: number,
    inboxId: InboxId,
    key: WrappedKey,
  ): Promise<{ stands: KeyStatement['says']; wasContested: boolean }>
  /** Puts `forgotten` in place of each key, for good. That must be durable on the log. */
  forget(partition: number, inboxIds: readonly InboxId[]): Promise<void>
  /**
   * Begins to follow a log at an offset, unless the view no longer stands where it was seen to. A view of another log,
   * or of none, is emptied.
   */
  begin(
    partition: number,
    start: Pick<ViewStanding, 'logId' | 'next'>,
    seen: ViewStanding | null,
  ): Promise<void>
  /** Compare and set: all of it where the view of this log stands at `from`; otherwise nothing, and `moved`. */
  apply(step: KeyStep): Promise<KeyStepOutcome>
}

/** The view does not answer, or can't now; what it was asked to do may have been done. */
export class KeyViewUnavailableError extends UnavailableError {
  override readonly name = 'KeyViewUnavailableError'
}
