import type { Database, Key } from 'lmdb'
import type { Inbox } from '#libs/domain/inbox/inbox.js'
import type { MessageId, WebhookId } from '#libs/domain/ids/typeid.js'
import { REMOVED } from '#libs/domain/webhook/webhook.js'
import type { LabelTotals } from '#libs/ports/read-model/queries.js'
import type { Change, DeliveryRow, MessageContent } from '#libs/ports/read-model/views.js'
import {
  countPeriod,
  entriesOfDelivery,
  entriesOfInbox,
  indexChanges,
  type IndexEntry,
} from '#libs/ports/read-model/index-entries.js'
import {
  ALL,
  ALL_OFFSETS,
  afterIds,
  beforeIds,
  idRange,
  offsetRange,
  type DueDeliveryKey,
  type LabelCountKey,
  type LabelTotalKey,
  type ReplayRowKey,
  type Tables,
} from './tables.js'

/*
 * Stores a change: its row, then its index entries. Every function must be called in a transaction.
 */

export function applyChange(tables: Tables, partition: number, change: Change): void {
  rowOf(tables, partition, change)?.put()
  const { remove, put } = indexChanges(change)
  for (const entry of remove) entryOf(tables, partition, entry)?.remove()
  for (const entry of put) entryOf(tables, partition, entry)?.put()
  if (change.type === 'put-delivery') putEarliest(tables, change.row.delivery.webhookId)
  if (change.type === 'drop-messages') dropMessages(tables, partition, change.inbox)
  if (change.type === 'put-message' && change.row.message.state === 'deleted') {
    removeContent(tables, change.row.message.id)
  }
}

export function putContent(tables: Tables, { messageId, body, raw }: MessageContent): void {
  tables.bodies.putSync(messageId, Buffer.from(body))
  tables.raws.putSync(messageId, Buffer.from(raw))
}

/** Removes an inbox with its messages and history. */
export function removeInbox(tables: Tables, partition: number, inbox: Inbox): void {
  dropMessages(tables, partition, inbox)
  const history = [...tables.history.getKeys(offsetRange([inbox.id], ALL_OFFSETS))]
  for (const key of history) {
    tables.history.removeSync(key)
    tables.environmentEndings.removeSync([inbox.accountId, inbox.environment, partition, key[1]])
  }
  for (const entry of entriesOfInbox(inbox)) entryOf(tables, partition, entry)?.remove()
  tables.inboxes.removeSync(inbox.id)
}

export function removeDelivery(tables: Tables, partition: number, row: DeliveryRow): void {
  for (const entry of entriesOfDelivery(row)) entryOf(tables, partition, entry)?.remove()
  tables.deliveries.removeSync([row.delivery.webhookId, row.delivery.id])
}

export function removeReplay(tables: Tables, key: ReplayRowKey): void {
  tables.pendingReplays.removeSync(key)
  tables.replays.removeSync(key)
}

/** Removes the remaining rows of a webhook that has no deliveries any more. */
export function removeWebhookHealth(tables: Tables, webhookId: WebhookId): void {
  putEarliest(tables, webhookId)
  const replays = idRange([webhookId], 'rpl', ALL)
  for (const key of [...tables.replays.getKeys(replays)]) removeReplay(tables, key)
  tables.webhookHealth.removeSync(webhookId)
}

/** The range of a webhook's due deliveries, earliest first. */
export function dueRangeOf(
  webhookId: WebhookId,
  untilMs = Infinity,
): { start: DueDeliveryKey; end: DueDeliveryKey } {
  return { start: [webhookId, 0, beforeIds('dlv')], end: [webhookId, untilMs, afterIds('dlv')] }
}

interface Stored {
  put: () => unknown
  remove: () => unknown
}

/** The row that a change stores; null if it stores none. */
function rowOf(tables: Tables, partition: number, change: Change): Stored | null {
  switch (change.type) {
    case 'put-inbox':
      return at(tables.inboxes, change.row.inbox.id, { ...change.row, partition })
    case 'put-message':
      return at(tables.messages, [change.inbox.id, change.row.message.id], change.row)
    case 'drop-messages':
      return null
    case 'put-history':
      return at(tables.history, [change.inbox.id, change.entry.offset], change.entry)
    case 'put-account':
      return at(tables.accounts, change.account.id, change.account)
    case 'put-key':
      return at(tables.keys, change.key.id, change.key)
    case 'put-delivery': {
      const { webhookId, id } = change.row.delivery
      return at(tables.deliveries, [webhookId, id], change.row)
    }
    case 'put-replay':
      return at(tables.replays, [change.replay.webhookId, change.replay.id], change.replay)
    case 'put-webhook-health':
      return at(tables.webhookHealth, change.health.webhookId, { ...change.health, partition })
    case 'put-webhook':
      return at(tables.webhooks, change.webhook.id, change.webhook)
    case 'remove-webhook':
      return at(tables.webhooks, change.webhook.id, REMOVED)
  }
}

/** Null for an index that LMDB does not need: its rows are in order, and it reads every webhook of a scope. */
function entryOf(tables: Tables, partition: number, entry: IndexEntry): Stored | null {
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
    case 'label-counts': {
      const { inbox, name, value } = entry
      const { accountId, environment, id, receivedCount: received } = inbox
      const total: LabelTotalKey = [accountId, environment, name, value, countPeriod(inbox)]
      const key: LabelCountKey = [...total, received, id]
      return {
        put: () => {
          tables.labelCounts.putSync(key, true)
          addToTotal(tables, total, { inboxes: 1, received })
        },
        // Rows of an older form have no entry, and are not in the totals.
        remove: () => {
          if (!tables.labelCounts.removeSync(key)) return
          addToTotal(tables, total, { inboxes: -1, received: -received })
        },
      }
    }
    case 'due-inboxes':
      return at(tables.due, [entry.expiresAt.getTime(), entry.inboxId], true)
    case 'messages':
      return at(tables.messageIndex, [entry.inboxId, entry.offset], entry.messageId)
    case 'environment-messages': {
      const { accountId, environment } = entry.inbox
      const { inboxId, messageId, receivedAt, offset } = entry.message
      const value = [inboxId, messageId, receivedAt.getTime()] as const
      return at(tables.environmentMessages, [accountId, environment, partition, offset], [...value])
    }
    case 'environment-endings': {
      const { id, accountId, environment } = entry.inbox
      return at(tables.environmentEndings, [accountId, environment, partition, entry.offset], id)
    }
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
    case 'pending-replays':
      return at(tables.pendingReplays, [entry.replay.webhookId, entry.replay.id], true)
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

function addToTotal({ labelTotals }: Tables, key: LabelTotalKey, { inboxes, received }: LabelTotals): void {
  const before = labelTotals.get(key) ?? { inboxes: 0, received: 0 }
  const total = { inboxes: before.inboxes + inboxes, received: before.received + received }
  if (total.inboxes === 0) labelTotals.removeSync(key)
  else labelTotals.putSync(key, total)
}

function dropMessages(tables: Tables, partition: number, inbox: Inbox): void {
  const { id: inboxId, accountId, environment, isProtected } = inbox
  const index = [...tables.messageIndex.getKeys(offsetRange([inboxId], ALL_OFFSETS))]
  for (const key of index) {
    tables.messageIndex.removeSync(key)
    if (!isProtected) tables.environmentMessages.removeSync([accountId, environment, partition, key[1]])
  }
  const rows = idRange([inboxId], 'msg', ALL)
  for (const key of [...tables.messages.getKeys(rows)]) {
    tables.messages.removeSync(key)
    removeContent(tables, key[1])
  }
}

function removeContent(tables: Tables, messageId: MessageId): void {
  tables.bodies.removeSync(messageId)
  tables.raws.removeSync(messageId)
}

/** Updates the earliest due time of a webhook, by which due webhooks are found. */
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
