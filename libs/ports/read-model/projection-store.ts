import type { AccountSlice } from '#libs/domain/account/account.js'
import type { Partition, PartitionRange, LogLayout } from '#libs/ports/event-log/event-log.js'
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
import type { Change, DeliveryRow, InboxRow, MessageContent, MessageRow, WebhookHealth } from './views.js'

/** Moves a partition's views from one offset to another, with every change that the records in between bring. */
export interface Step extends Partition {
  from: number
  to: number
  changes: readonly Change[]
  contents: readonly MessageContent[]
}

/** Absent: the partition's views were never begun, or are lost. */
export type StepOutcome = 'applied' | 'absent' | { standsAt: number }

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

/** The rows that an account event is checked against. */
export interface AccountSliceKey {
  accountId: AccountId
  keyId: KeyId | null
  webhookId: WebhookId | null
}

/** What a projector needs of the views. Errors: `ReadModelUnavailableError`, as for the queries. */
export interface ProjectionStore {
  /**
   * Makes a partition's views ready to follow a log and resolves with the offset to continue from. Views of another
   * log, or of another form, are emptied first and rebuilt from its first record. Until they reach the range's end they
   * count as catching up.
   *
   * Views past the range's end are left as they are, and their offset is returned as `aheadAt`: records may have been
   * appended since the range was looked up. If they are still at the `aheadAt` that is passed, with a newer range, their
   * log has lost its end, and they are emptied. `beginViews` does so.
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
   * Compare and set: applies changes, contents and the new offset together if the partition's views are at `from`,
   * otherwise nothing. Resolves once queries see it.
   */
  apply(step: Step): Promise<StepOutcome>
}

/** Makes a partition's views ready to follow the log; resolves with its range and the offset to continue from. */
export async function beginViews(
  store: Pick<ProjectionStore, 'begin'>,
  log: LogLayout,
  { topic, partition }: Partition,
): Promise<{ range: PartitionRange; offset: number }> {
  let aheadAt: number | undefined
  for (;;) {
    const { logId, partitions } = await log.topology(topic)
    const range = partitions.find((candidate) => candidate.partition === partition)
    if (range === undefined) throw new RangeError(`${topic} has no partition ${partition}`)
    const begun = await store.begin(logId, range, aheadAt)
    if (typeof begun === 'number') return { range, offset: begun }
    aheadAt = begun.aheadAt
  }
}
