import type { Database, Key } from 'lmdb'
import type { Inbox } from '#libs/domain/inbox/inbox.js'
import type { DeliveryId, InboxId, MessageId, WebhookId } from '#libs/domain/ids/typeid.js'
import { REMOVED } from '#libs/domain/webhook/webhook.js'
import {
  entriesOfDelivery,
  entriesOfInbox,
  indexChanges,
  type IndexEntry,
} from '#libs/ports/read-model/index-entries.js'
import type { Change, DeliveryRow, MessageContent } from '#libs/ports/read-model/views.js'
import {
  ALL,
  ALL_OFFSETS,
  idRange,
  offsetRange,
  type DueDeliveryKey,
  type ReplayRowKey,
  type Tables,
} from './tables.js'

/*
 * How a change is stored: its row, then its index entries. Everything here is called within a transaction.
 */

export function applyChange(tables: Tables, partition: number, change: Change): void {
  putRow(tables, partition, change)
  const { remove, put } = indexChanges(change)
  for (const entry of remove) stored(tables, entry)?.remove()
  for (const entry of put) stored(tables, entry)?.put()
  if (change.type === 'put-delivery') putEarliest(tables, change.row.delivery.webhookId)
}

export function putContent(tables: Tables, { messageId, body, raw }: MessageContent): void {
  tables.bodies.putSync(messageId, Buffer.from(body))
  tables.raws.putSync(messageId, Buffer.from(raw))
}

/** Removes an inbox with its messages and history, without a trace. */
export function removeInbox(tables: Tables, inbox: Inbox): void {
  dropMessages(tables, inbox.id)
  const history = [...tables.history.getKeys(offsetRange([inbox.id], ALL_OFFSETS))]
  for (const key of history) tables.history.removeSync(key)
  for (const entry of entriesOfInbox(inbox)) stored(tables, entry)?.remove()
  tables.inboxes.removeSync(inbox.id)
}

export function removeDelivery(tables: Tables, row: DeliveryRow): void {
  for (const entry of entriesOfDelivery(row)) stored(tables, entry)?.remove()
  tables.deliveries.removeSync([row.delivery.webhookId, row.delivery.id])
}

export function removeReplay(tables: Tables, key: ReplayRowKey): void {
  tables.askingReplays.removeSync(key)
  tables.replays.removeSync(key)
}

/** Removes what is left of a webhook without deliveries. */
export function removeWebhookHealth(tables: Tables, webhookId: WebhookId): void {
  putEarliest(tables, webhookId)
  const replays = idRange([webhookId], 'rpl_', ALL)
  for (const key of [...tables.replays.getKeys(replays)]) removeReplay(tables, key)
  tables.webhookHealth.removeSync(webhookId)
}

/** The range of a webhook's due deliveries, earliest first. */
export function dueRangeOf(
  webhookId: WebhookId,
  untilMs = Infinity,
): { start: DueDeliveryKey; end: DueDeliveryKey } {
  return { start: [webhookId, 0, 'dlv_' as DeliveryId], end: [webhookId, untilMs, 'dlv_~' as DeliveryId] }
}

function putRow(tables: Tables, partition: number, change: Change): void {
  switch (change.type) {
    case 'put-inbox':
      tables.inboxes.putSync(change.row.inbox.id, { ...change.row, partition })
      return
    case 'put-message': {
      const { id, state } = change.row.message
      tables.messages.putSync([change.inboxId, id], change.row)
      if (state === 'deleted') removeContent(tables, id)
      return
    }
    case 'drop-messages':
      dropMessages(tables, change.inboxId)
      return
    case 'put-history':
      tables.history.putSync([change.inboxId, change.entry.offset], change.entry)
      return
    case 'put-account':
      tables.accounts.putSync(change.account.id, change.account)
      return
    case 'put-key':
      tables.keys.putSync(change.key.id, change.key)
      return
    case 'put-delivery':
      tables.deliveries.putSync([change.row.delivery.webhookId, change.row.delivery.id], change.row)
      return
    case 'put-replay':
      tables.replays.putSync([change.replay.webhookId, change.replay.id], change.replay)
      return
    case 'put-webhook-health':
      tables.webhookHealth.putSync(change.health.webhookId, { ...change.health, partition })
      return
    case 'put-webhook':
      tables.webhooks.putSync(change.webhook.id, change.webhook)
      return
    case 'remove-webhook':
      tables.webhooks.putSync(change.webhook.id, REMOVED)
      return
  }
}

interface Stored {
  put: () => unknown
  remove: () => unknown
}

/** Null for an index that LMDB does without: it keeps rows in order, and reads every webhook of a scope. */
function stored(tables: Tables, entry: IndexEntry): Stored | null {
  switch (entry.index) {
    case 'addresses':
      return at(tables.addresses, entry.address, entry.inboxId)
    case 'listing': {
      const { accountId, environment, state, id } = entry.inbox
      return at(tables.listing, [accountId, environment, state, id], true)
    }
    case 'labels': {
      const { accountId, environment, state, id } = entry.inbox
      return at(tables.labels, [accountId, environment, state, entry.name, entry.value, id], true)
    }
    case 'due-inboxes':
      return at(tables.due, [entry.expiresAt.getTime(), entry.inboxId], true)
    case 'messages':
      return at(tables.messageIndex, [entry.inboxId, entry.offset], entry.messageId)
    case 'key-hashes':
      return at(tables.keyHashes, entry.secretHash, entry.keyId)
    case 'keys':
      return at(tables.accountKeys, [entry.key.accountId, entry.key.id], true)
    case 'active-keys': {
      const { id, accountId, environment, scopes } = entry.key
      return at(tables.activeKeys, [accountId, id], { id, environment, scopes })
    }
    case 'webhooks': {
      const { id, inboxId, accountId, environment } = entry.webhook
      return inboxId === null
        ? at(tables.environmentWebhooks, [accountId, environment, id], true)
        : at(tables.inboxWebhooks, [inboxId, id], true)
    }
    case 'deliveries': {
      const { delivery, offset } = entry.row
      return at(tables.deliveryOrder, [delivery.webhookId, offset], delivery.id)
    }
    case 'delivery-states': {
      const { delivery, offset } = entry.row
      return at(tables.deliveryStates, [delivery.webhookId, delivery.state, offset], delivery.id)
    }
    case 'due-deliveries':
      return at(tables.dueDeliveries, [entry.webhookId, entry.dueAt.getTime(), entry.deliveryId], true)
    case 'asking-replays':
      return at(tables.askingReplays, [entry.replay.webhookId, entry.replay.id], true)
    case 'accounts':
    case 'active-webhooks':
    case 'replays':
      return null
  }
}

function at<Value, TableKey extends Key>(
  table: Database<Value, TableKey>,
  key: TableKey,
  value: Value,
): Stored {
  return { put: () => table.putSync(key, value), remove: () => table.removeSync(key) }
}

function dropMessages(tables: Tables, inboxId: InboxId): void {
  const index = [...tables.messageIndex.getKeys(offsetRange([inboxId], ALL_OFFSETS))]
  for (const key of index) tables.messageIndex.removeSync(key)
  const rows = idRange([inboxId], 'msg_' as MessageId, ALL)
  for (const key of [...tables.messages.getKeys(rows)]) {
    tables.messages.removeSync(key)
    removeContent(tables, key[1])
  }
}

function removeContent(tables: Tables, messageId: MessageId): void {
  tables.bodies.removeSync(messageId)
  tables.raws.removeSync(messageId)
}

/** Keeps the earliest due time of a webhook, by which due webhooks are found. */
function putEarliest(tables: Tables, webhookId: WebhookId): void {
  const [first] = tables.dueDeliveries.getKeys({ ...dueRangeOf(webhookId), limit: 1 })
  const earliestMs = first?.[1]
  const knownMs = tables.earliestDue.get(webhookId)
  if (earliestMs === knownMs) return
  if (knownMs !== undefined) tables.dueWebhooks.removeSync([knownMs, webhookId])
  if (earliestMs === undefined) {
    tables.earliestDue.removeSync(webhookId)
    return
  }
  tables.earliestDue.putSync(webhookId, earliestMs)
  tables.dueWebhooks.putSync([earliestMs, webhookId], true)
}
