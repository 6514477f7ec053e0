import type { Key, RootDatabase } from 'lmdb'
import type { Account, ApiKey } from '#libs/domain/account/account.js'
import type { Inbox } from '#libs/domain/inbox/inbox.js'
import type {
  AccountId,
  DeliveryId,
  Id,
  InboxId,
  KeyId,
  MessageId,
  ReplayId,
  WebhookId,
} from '#libs/domain/ids/typeid.js'
import type { Delivery } from '#libs/domain/webhook/delivery.js'
import type { Replay } from '#libs/domain/webhook/replay.js'
import type { REMOVED, Webhook } from '#libs/domain/webhook/webhook.js'
import type { LogTopic } from '#libs/ports/event-log/topics.js'
import type { ActiveKey, LabelTotals, ListQuery, OffsetQuery } from '#libs/ports/read-model/queries.js'
import type {
  DeliveryRow,
  InboxRow,
  MessageRow,
  WebhookHealth,
  HistoryEntry,
} from '#libs/ports/read-model/views.js'

/*
 * The tables of the views' LMDB file. Relies on lmdb 3 with commits that are visible at once and synced to disk soon
 * after. A crash of the machine restores the last synced commit: views may lose their last steps, but stay consistent.
 */

/** How far the views of a partition have the log's events. */
export interface ProgressRow {
  logId: string
  /** The version of the form of the views. Views of another form are rebuilt. */
  form: number
  position: number
  target: number
  begunAtMs: number
}

/** A row that is removed when its partition of inbox-events or webhook-events is emptied. */
interface OfPartition {
  partition: number
}

type ListKey = [account: AccountId, environment: string, state: Inbox['state'], id: InboxId]
type LabelKey = [
  ...[account: AccountId, environment: string, state: Inbox['state']],
  ...[name: string, value: string, id: InboxId],
]
export type LabelTotalKey = [
  ...[account: AccountId, environment: string, name: string, value: string],
  period: string,
]
export type LabelCountKey = [...LabelTotalKey, received: number, id: InboxId]
type EnvironmentKey = [account: AccountId, environment: string, partition: number, offset: number]
type EnvironmentMessageValue = [inbox: InboxId, message: MessageId, receivedAtMs: number]
export type DueKey = [expiresAtMs: number, id: InboxId]
export type DueDeliveryKey = [webhook: WebhookId, dueAtMs: number, delivery: DeliveryId]
export type ReplayRowKey = [webhook: WebhookId, replay: ReplayId]
export type DueWebhookKey = [dueAtMs: number, webhook: WebhookId]

export type Tables = ReturnType<typeof tablesIn>

/** Throws if the file's list of tables can't be read. */
export function tablesIn(root: RootDatabase<unknown, string>) {
  const index = <Value, TableKey extends Key>(name: string) => root.openDB<Value, TableKey>({ name })
  // A row with its own record structure takes longer to read than one with the names of its fields.
  const encoding = { encoder: { useRecords: false } }
  const rows = <Value, TableKey extends Key>(name: string) =>
    root.openDB<Value, TableKey>({ name, ...encoding })
  const contents = (name: string) => root.openDB<Buffer, MessageId>({ name, encoding: 'binary' })
  return {
    root,
    progress: rows<ProgressRow, [topic: string, partition: number]>('slots'),
    inboxes: rows<InboxRow & OfPartition, InboxId>('inboxes'),
    addresses: index<InboxId, string>('addresses'),
    listing: index<true, ListKey>('listing'),
    labels: index<true, LabelKey>('labels'),
    labelCounts: index<true, LabelCountKey>('label-counts'),
    labelTotals: index<LabelTotals, LabelTotalKey>('label-totals'),
    due: index<true, DueKey>('due'),
    messageIndex: index<MessageId, [inbox: InboxId, offset: number]>('message-index'),
    /** By environment and partition, in the order of the log. */
    environmentMessages: index<EnvironmentMessageValue, EnvironmentKey>('environment-messages'),
    /** By environment and partition: inboxes whose history has an ending at the offset. */
    environmentEndings: index<InboxId, EnvironmentKey>('environment-endings'),
    messages: rows<MessageRow, [inbox: InboxId, message: MessageId]>('messages'),
    bodies: contents('bodies'),
    raws: contents('raws'),
    history: rows<HistoryEntry, [inbox: InboxId, offset: number]>('history'),
    accounts: rows<Account, AccountId>('accounts'),
    keys: rows<ApiKey, KeyId>('keys'),
    /** Hashes of every secret that a key has had. */
    keyHashes: index<KeyId, string>('key-hashes'),
    accountKeys: index<true, [account: AccountId, key: KeyId]>('account-keys'),
    activeKeys: index<ActiveKey, [account: AccountId, key: KeyId]>('active-keys'),
    /** Every webhook that has had a delivery or a replay. */
    webhookHealth: rows<WebhookHealth & OfPartition, WebhookId>('webhook-health'),
    deliveries: rows<DeliveryRow, [webhook: WebhookId, delivery: DeliveryId]>('deliveries'),
    deliveryOrder: index<DeliveryId, [webhook: WebhookId, offset: number]>('delivery-order'),
    deliveryStates: index<DeliveryId, [webhook: WebhookId, state: Delivery['state'], offset: number]>(
      'delivery-states',
    ),
    dueDeliveries: index<true, DueDeliveryKey>('due-deliveries'),
    /** The earliest due time of each webhook that has deliveries due, now or later. */
    earliestDue: index<number, WebhookId>('earliest-due'),
    dueWebhooks: index<true, DueWebhookKey>('due-webhooks'),
    replays: rows<Replay, ReplayRowKey>('replays'),
    /** Replays that have more deliveries to request. */
    pendingReplays: index<true, ReplayRowKey>('asking-replays'),
    /** A removed webhook is a mark. */
    webhooks: rows<Webhook | typeof REMOVED, WebhookId>('webhooks'),
    /** Webhooks of one inbox. */
    inboxWebhooks: index<true, [inbox: InboxId, webhook: WebhookId]>('inbox-webhooks'),
    /** Webhooks for all inboxes of an environment. */
    environmentWebhooks: index<true, [account: AccountId, environment: string, webhook: WebhookId]>(
      'environment-webhooks',
    ),
  }
}

/** The tables that hold the views of account-events. */
export function accountTablesOf(tables: Tables): Pick<RootDatabase, 'clearAsync'>[] {
  const { accounts, keys, keyHashes, accountKeys, activeKeys } = tables
  const { webhooks, inboxWebhooks, environmentWebhooks } = tables
  return [accounts, keys, keyHashes, accountKeys, activeKeys, webhooks, inboxWebhooks, environmentWebhooks]
}

/** Whether the views of any partition of a topic are catching up with the log. */
export function isCatchingUpWith({ progress }: Tables, topic: LogTopic): boolean {
  for (const { value } of progress.getRange({ start: [topic, 0], end: [topic, Infinity] })) {
    if (value.position < value.target) return true
  }
  return false
}

/** The whole list, in order. */
export const ALL = { order: 'asc', after: null, limit: Infinity } as const
export const ALL_OFFSETS = { order: 'asc', from: 0, to: Infinity, limit: Infinity } as const

/** Sorts before every id with the prefix. */
export function beforeIds<Prefix extends string>(prefix: Prefix): Id<Prefix> {
  return `${prefix}_` as Id<Prefix>
}

/** Sorts after every id with the prefix. */
export function afterIds<Prefix extends string>(prefix: Prefix): Id<Prefix> {
  return `${prefix}_~` as Id<Prefix>
}

/** The range of a list in a table whose keys are a scope and an id with the prefix. */
export function idRange<Scope extends Key[], Prefix extends string>(
  scope: readonly [...Scope],
  prefix: Prefix,
  { order, after, limit }: ListQuery<Id<Prefix>>,
): {
  start: [...Scope, Id<Prefix>]
  end: [...Scope, Id<Prefix>]
  limit: number
  reverse: boolean
  exclusiveStart: true
} {
  const [first, last] = [beforeIds(prefix), afterIds(prefix)]
  const [from, to] = order === 'asc' ? [after ?? first, last] : [after ?? last, first]
  return {
    ...{ start: [...scope, from], end: [...scope, to], limit },
    ...{ reverse: order === 'desc', exclusiveStart: true },
  }
}

/** The range of a list in a table whose keys are a scope and an offset. */
export function offsetRange<Scope extends Key[]>(
  scope: readonly [...Scope],
  { order, from, to, limit }: OffsetQuery,
): { start: [...Scope, number]; end: [...Scope, number]; limit: number; reverse: boolean } {
  const [start, end] = order === 'asc' ? [from, to] : [to - 1, from - 1]
  return { start: [...scope, start], end: [...scope, end], limit, reverse: order === 'desc' }
}
