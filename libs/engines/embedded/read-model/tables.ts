import type { Database, RootDatabase } from 'lmdb'
import type { Account, ApiKey } from '#libs/domain/account/account.js'
import type { Inbox } from '#libs/domain/inbox/inbox.js'
import type {
  AccountId,
  DeliveryId,
  InboxId,
  KeyId,
  MessageId,
  ReplayId,
  WebhookId,
} from '#libs/domain/ids/typeid.js'
import type { Delivery } from '#libs/domain/webhook/delivery.js'
import type { Replay } from '#libs/domain/webhook/replay.js'
import type { REMOVED, Webhook } from '#libs/domain/webhook/webhook.js'
import { openLmdbFile } from '#libs/engines/embedded/lmdb-file/lmdb-file.js'
import type { ActiveKey } from '#libs/ports/read-model/queries.js'
import type { HistoryEntry } from '#libs/ports/read-model/history.js'
import type { DeliveryRow, InboxRow, MessageRow, WebhookHealth } from '#libs/ports/read-model/views.js'

/*
 * Relies on: lmdb 3 synced after seen, where a commit is seen at once and synced to disk soon after, and
 * where a crash leaves the last synced commit whole: views may lose their tail, never their sense.
 */

export interface SlotRow {
  logId: string
  /** The form of the views; another one is rebuilt. */
  form: number
  position: number
  target: number
  begunAtMs: number
}

export interface PartitionedInboxRow extends InboxRow {
  /** Of inbox-events. */
  partition: number
}

export interface PartitionedHealth extends WebhookHealth {
  /** Of webhook-events. */
  partition: number
}

export type ListKey = [account: AccountId, environment: string, state: Inbox['state'], id: InboxId]
export type LabelKey = [
  account: AccountId,
  environment: string,
  state: Inbox['state'],
  name: string,
  value: string,
  id: InboxId,
]
export type DueKey = [expiresAtMs: number, id: InboxId]
export type AccountKeyKey = [account: AccountId, key: KeyId]
/** Of an inbox's own webhook. */
export type InboxWebhookKey = [inbox: InboxId, webhook: WebhookId]
/** Of a webhook for all inboxes of an environment. */
export type EnvironmentWebhookKey = [account: AccountId, environment: string, webhook: WebhookId]
export type MessageIndexKey = [inbox: InboxId, offset: number]
export type HistoryKey = [inbox: InboxId, offset: number]
export type MessageRowKey = [inbox: InboxId, message: MessageId]
export type DeliveryRowKey = [webhook: WebhookId, delivery: DeliveryId]
export type DeliveryOrderKey = [webhook: WebhookId, offset: number]
export type DeliveryStateKey = [webhook: WebhookId, state: Delivery['state'], offset: number]
export type DueDeliveryKey = [webhook: WebhookId, dueAtMs: number, delivery: DeliveryId]
export type ReplayRowKey = [webhook: WebhookId, replay: ReplayId]
export type DueWebhookKey = [dueAtMs: number, webhook: WebhookId]

export interface Tables {
  root: RootDatabase<unknown, string>
  slots: Database<SlotRow, [topic: string, partition: number]>
  inboxes: Database<PartitionedInboxRow, InboxId>
  addresses: Database<InboxId, string>
  listing: Database<true, ListKey>
  labels: Database<true, LabelKey>
  due: Database<true, DueKey>
  messageIndex: Database<MessageId, MessageIndexKey>
  messages: Database<MessageRow, MessageRowKey>
  bodies: Database<Buffer, MessageId>
  raws: Database<Buffer, MessageId>
  history: Database<HistoryEntry, HistoryKey>
  accounts: Database<Account, AccountId>
  keys: Database<ApiKey, KeyId>
  /** Of every secret that a key has had. */
  keyHashes: Database<KeyId, string>
  accountKeys: Database<true, AccountKeyKey>
  activeKeys: Database<ActiveKey, AccountKeyKey>
  /** Of every webhook that has had a delivery or a replay. */
  webhookHealth: Database<PartitionedHealth, WebhookId>
  deliveries: Database<DeliveryRow, DeliveryRowKey>
  deliveryOrder: Database<DeliveryId, DeliveryOrderKey>
  deliveryStates: Database<DeliveryId, DeliveryStateKey>
  dueDeliveries: Database<true, DueDeliveryKey>
  /** Of a webhook that has something due, now or later: when the earliest of it is. */
  earliestDue: Database<number, WebhookId>
  dueWebhooks: Database<true, DueWebhookKey>
  replays: Database<Replay, ReplayRowKey>
  /** Those that have more to ask for. */
  askingReplays: Database<true, ReplayRowKey>
  /** Removed ones as marks. */
  webhooks: Database<Webhook | typeof REMOVED, WebhookId>
  inboxWebhooks: Database<true, InboxWebhookKey>
  environmentWebhooks: Database<true, EnvironmentWebhookKey>
}

/** Rejects if the file can't be opened, or what it says of its tables can't be read. */
export async function openTables(path: string): Promise<Tables> {
  const root = openLmdbFile<unknown, string>({ path, isSynced: 'after-seen', maxDbs: 40 })
  try {
    return tablesIn(root)
  } catch (error) {
    await root.close()
    throw error
  }
}

function tablesIn(root: RootDatabase<unknown, string>): Tables {
  const binary = { encoding: 'binary' } as const
  // A definition of its own in each row takes longer to read than the names of its fields.
  const asMap = { encoder: { useRecords: false } }
  return {
    root,
    slots: root.openDB({ name: 'slots', ...asMap }),
    inboxes: root.openDB({ name: 'inboxes', ...asMap }),
    addresses: root.openDB({ name: 'addresses' }),
    listing: root.openDB({ name: 'listing' }),
    labels: root.openDB({ name: 'labels' }),
    due: root.openDB({ name: 'due' }),
    messageIndex: root.openDB({ name: 'message-index' }),
    messages: root.openDB({ name: 'messages', ...asMap }),
    bodies: root.openDB({ name: 'bodies', ...binary }),
    raws: root.openDB({ name: 'raws', ...binary }),
    history: root.openDB({ name: 'history', ...asMap }),
    accounts: root.openDB({ name: 'accounts', ...asMap }),
    keys: root.openDB({ name: 'keys', ...asMap }),
    keyHashes: root.openDB({ name: 'key-hashes' }),
    accountKeys: root.openDB({ name: 'account-keys' }),
    activeKeys: root.openDB({ name: 'active-keys' }),
    webhookHealth: root.openDB({ name: 'webhook-health', ...asMap }),
    deliveries: root.openDB({ name: 'deliveries', ...asMap }),
    deliveryOrder: root.openDB({ name: 'delivery-order' }),
    deliveryStates: root.openDB({ name: 'delivery-states' }),
    dueDeliveries: root.openDB({ name: 'due-deliveries' }),
    earliestDue: root.openDB({ name: 'earliest-due' }),
    dueWebhooks: root.openDB({ name: 'due-webhooks' }),
    replays: root.openDB({ name: 'replays', ...asMap }),
    askingReplays: root.openDB({ name: 'asking-replays' }),
    webhooks: root.openDB({ name: 'webhooks', ...asMap }),
    inboxWebhooks: root.openDB({ name: 'inbox-webhooks' }),
    environmentWebhooks: root.openDB({ name: 'environment-webhooks' }),
  }
}

/** What is made of account-events. */
export function accountTablesOf(tables: Tables): Pick<RootDatabase, 'clearAsync'>[] {
  const { accounts, keys, keyHashes, accountKeys, activeKeys } = tables
  const { webhooks, inboxWebhooks, environmentWebhooks } = tables
  return [
    ...[accounts, keys, keyHashes, accountKeys, activeKeys],
    ...[webhooks, inboxWebhooks, environmentWebhooks],
  ]
}

/** The range that holds an inbox's history. */
export function historyRangeOf(inboxId: InboxId): { start: HistoryKey; end: HistoryKey } {
  return { start: [inboxId, 0], end: [inboxId, Infinity] }
}

/** The ranges that hold an inbox's messages, in the index and in the rows. */
export function messageRangesOf(inboxId: InboxId): {
  index: { start: MessageIndexKey; end: MessageIndexKey }
  rows: { start: MessageRowKey; end: MessageRowKey }
} {
  return {
    index: { start: [inboxId, 0], end: [inboxId, Infinity] },
    rows: { start: [inboxId, FIRST_MESSAGE_ID], end: [inboxId, BEHIND_MESSAGE_IDS] },
  }
}

/** The range that holds a webhook's replays, in both of their tables. */
export function replayRangeOf(webhookId: WebhookId): { start: ReplayRowKey; end: ReplayRowKey } {
  return { start: [webhookId, FIRST_REPLAY_ID], end: [webhookId, BEHIND_REPLAY_IDS] }
}

const FIRST_REPLAY_ID = 'rpl_' as ReplayId
const BEHIND_REPLAY_IDS = 'rpl_~' as ReplayId
const FIRST_MESSAGE_ID = 'msg_' as MessageId
const BEHIND_MESSAGE_IDS = 'msg_~' as MessageId
