import type { AccountSlice } from '#libs/account/account.js'
import type { Partition, PartitionRange } from '#libs/event-log/event-log.js'
import type { AccountId, InboxId, KeyId, MessageId } from '#libs/typeid/typeid.js'
import type { Change, InboxRow, MessageContent, MessageRow } from './views.js'

/**
 * One move of a partition's views: from the offset at which they stand to another, with every change that the
 * records in between bring.
 */
export interface Step extends Partition {
  from: number
  to: number
  changes: readonly Change[]
  contents: readonly MessageContent[]
}

export type StepOutcome = 'applied' | { standsAt: number }

export interface MessageKey {
  inboxId: InboxId
  messageId: MessageId
}

/** What a projector needs of the views. Errors: `ReadModelUnavailableError`, as for the queries. */
export interface ProjectionStore {
  /**
   * Makes a partition's views ready to follow a log and resolves with the offset to go on from. Views of another
   * log, of another form, or ahead of the log's end are emptied first: they are rebuilt from its first record.
   * Until they reach the range's end they count as catching up.
   */
  begin(logId: string, range: PartitionRange): Promise<number>
  inboxes(ids: readonly InboxId[]): Promise<(InboxRow | null)[]>
  messages(keys: readonly MessageKey[]): Promise<(MessageRow | null)[]>
  accountSlice(accountId: AccountId, keyId: KeyId | null): Promise<AccountSlice>
  /**
   * Compare and set: applies changes, contents and the new offset together where the partition's views stand at
   * `from`, and otherwise nothing. Resolves once queries see it.
   */
  apply(step: Step): Promise<StepOutcome>
}
