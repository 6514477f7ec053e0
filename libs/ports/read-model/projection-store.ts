import type { AccountSlice } from '#libs/domain/account/account.js'
import type {
  AccountId,
  DeliveryId,
  InboxId,
  KeyId,
  MessageId,
  ReplayId,
  WebhookId,
} from '#libs/domain/ids/typeid.js'
import type { Replay } from '#libs/domain/webhook/replay.js'
import {
  type LogLayout,
  type Partition,
  type PartitionRange,
  findRange,
} from '#libs/ports/event-log/event-log.js'
import type { Change, DeliveryRow, InboxRow, MessageContent, MessageRow, WebhookHealth } from './views.js'

/** Advances a partition's views from one offset to another, with all changes of the records in between. */
export interface Step extends Partition {
  from: number
  to: number
  changes: readonly Change[]
  contents: readonly MessageContent[]
}

/** `absent`: the partition's views were never begun, or are lost. `position`: the views are at this other offset. */
export type StepOutcome = 'applied' | 'absent' | { position: number }

export interface MessageKey {
  inboxId: InboxId
  messageId: MessageId
}

export interface DeliveryKey {
  webhookId: WebhookId
  deliveryId: DeliveryId
}

export interface ReplayKey {
  webhookId: WebhookId
  replayId: ReplayId
}

/** The rows that an event of an account is applied to. */
export interface AccountSliceKey {
  accountId: AccountId
  keyId: KeyId | null
  webhookId: WebhookId | null
}

/** The views as the projector uses them. Errors: `ReadModelUnavailableError`, as for the queries. */
export interface ProjectionStore {
  /**
   * Makes a partition's views ready to follow a log and resolves with the offset to continue from. Views of another log,
   * or with another schema, are emptied first and rebuilt from the log's first record. They are catching up until they
   * reach the range's end.
   *
   * Views past the range's end are not changed, and their offset is returned as `aheadAt`: records may have been appended
   * since the range was read. If the views are still past the end of a newer range and at the given `aheadAt`, the log
   * was truncated, and they are emptied. `beginViews` handles this.
   */
  begin(logId: string, range: PartitionRange, aheadAt?: number): Promise<number | { aheadAt: number }>
  inboxes(ids: readonly InboxId[]): Promise<(InboxRow | null)[]>
  messages(keys: readonly MessageKey[]): Promise<(MessageRow | null)[]>
  deliveries(keys: readonly DeliveryKey[]): Promise<(DeliveryRow | null)[]>
  replays(keys: readonly ReplayKey[]): Promise<(Replay | null)[]>
  /** Null for a webhook without deliveries and replays. */
  webhookHealth(ids: readonly WebhookId[]): Promise<(WebhookHealth | null)[]>
  accountSlice(key: AccountSliceKey): Promise<AccountSlice>
  /**
   * Compare and set: applies changes, contents and the new offset atomically if the partition's views are at `from`;
   * otherwise nothing. Resolves once queries see them.
   */
  apply(step: Step): Promise<StepOutcome>
}

/** Makes a partition's views ready to follow the log; resolves with its range and the offset to continue from. */
export async function beginViews(
  store: Pick<ProjectionStore, 'begin'>,
  log: LogLayout,
  partition: Partition,
): Promise<{ range: PartitionRange; offset: number }> {
  let aheadAt: number | undefined
  for (;;) {
    const { logId, range } = await findRange(log, partition)
    const begun = await store.begin(logId, range, aheadAt)
    if (typeof begun === 'number') return { range, offset: begun }
    aheadAt = begun.aheadAt
  }
}
