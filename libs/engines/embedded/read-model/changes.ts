import type { ApiKey } from '#libs/domain/account/account.js'
import type { Inbox } from '#libs/domain/inbox/inbox.js'
import type { InboxId } from '#libs/domain/ids/typeid.js'
import { REMOVED, type Webhook } from '#libs/domain/webhook/webhook.js'
import type { Change, InboxRow, MessageContent, MessageRow } from '#libs/ports/read-model/views.js'
import { putDelivery, putWebhookHealth } from './delivery-changes.js'
import { putReplay } from './replay-changes.js'
import { historyRangeOf, messageRangesOf, type LabelKey, type ListKey, type Tables } from './tables.js'

/** Writes one change; to be called within a transaction. */
export function applyChange(tables: Tables, partition: number, change: Change): void {
  switch (change.type) {
    case 'put-inbox':
      putInbox(tables, partition, change.row, change.previous)
      return
    case 'put-message':
      putMessage(tables, change.inboxId, change.row)
      return
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
      putKey(tables, change.key)
      return
    case 'put-delivery':
      putDelivery(tables, change.row, change.previous)
      return
    case 'put-replay':
      putReplay(tables, change.replay)
      return
    case 'put-webhook-health':
      putWebhookHealth(tables, partition, change.health)
      return
    case 'put-webhook':
      putWebhook(tables, change.webhook)
      return
    case 'remove-webhook':
      removeWebhook(tables, change.webhook)
      return
  }
}

export function putContent(tables: Tables, { messageId, body, raw }: MessageContent): void {
  tables.bodies.putSync(messageId, Buffer.from(body))
  tables.raws.putSync(messageId, Buffer.from(raw))
}

/** Removes an inbox and all that belongs to it, as if it had never been. */
export function removeInbox(tables: Tables, inbox: Inbox): void {
  dropMessages(tables, inbox.id)
  for (const key of [...tables.history.getKeys(historyRangeOf(inbox.id))]) tables.history.removeSync(key)
  removeFromIndexes(tables, inbox)
  tables.addresses.removeSync(inbox.address)
  tables.inboxes.removeSync(inbox.id)
}

function putInbox(tables: Tables, partition: number, row: InboxRow, previous: Inbox | null): void {
  const { inbox } = row
  tables.inboxes.putSync(inbox.id, { ...row, partition })
  if (previous?.state === inbox.state) return
  if (previous === null) tables.addresses.putSync(inbox.address, inbox.id)
  else removeFromIndexes(tables, previous)
  tables.listing.putSync(listKey(inbox), true)
  for (const key of labelKeys(inbox)) tables.labels.putSync(key, true)
  if (inbox.state === 'active') tables.due.putSync([inbox.expiresAt.getTime(), inbox.id], true)
}

function removeFromIndexes(tables: Tables, inbox: Inbox): void {
  tables.listing.removeSync(listKey(inbox))
  for (const key of labelKeys(inbox)) tables.labels.removeSync(key)
  if (inbox.state === 'active') tables.due.removeSync([inbox.expiresAt.getTime(), inbox.id])
}

function putMessage(tables: Tables, inboxId: InboxId, row: MessageRow): void {
  const { message, offset } = row
  tables.messages.putSync([inboxId, message.id], row)
  if (message.state === 'present') {
    tables.messageIndex.putSync([inboxId, offset], message.id)
    return
  }
  tables.messageIndex.removeSync([inboxId, offset])
  tables.bodies.removeSync(message.id)
  tables.raws.removeSync(message.id)
}

function dropMessages(tables: Tables, inboxId: InboxId): void {
  const { index, rows } = messageRangesOf(inboxId)
  for (const key of [...tables.messageIndex.getKeys(index)]) tables.messageIndex.removeSync(key)
  for (const key of [...tables.messages.getKeys(rows)]) {
    tables.messages.removeSync(key)
    tables.bodies.removeSync(key[1])
    tables.raws.removeSync(key[1])
  }
}

function putKey(tables: Tables, key: ApiKey): void {
  const { id, accountId, environment, scopes, secretHash, revokedAt } = key
  tables.keys.putSync(id, key)
  tables.keyHashes.putSync(secretHash, id)
  tables.accountKeys.putSync([accountId, id], true)
  if (revokedAt === null) tables.activeKeys.putSync([accountId, id], { id, environment, scopes })
  else tables.activeKeys.removeSync([accountId, id])
}

function putWebhook(tables: Tables, webhook: Webhook): void {
  const { id, inboxId, accountId, environment } = webhook
  tables.webhooks.putSync(id, webhook)
  if (inboxId === null) tables.environmentWebhooks.putSync([accountId, environment, id], true)
  else tables.inboxWebhooks.putSync([inboxId, id], true)
}

function removeWebhook(tables: Tables, { id, inboxId, accountId, environment }: Webhook): void {
  tables.webhooks.putSync(id, REMOVED)
  if (inboxId === null) tables.environmentWebhooks.removeSync([accountId, environment, id])
  else tables.inboxWebhooks.removeSync([inboxId, id])
}

function listKey({ accountId, environment, state, id }: Inbox): ListKey {
  return [accountId, environment, state, id]
}

function labelKeys({ accountId, environment, state, labels, id }: Inbox): LabelKey[] {
  return Object.entries(labels).map(([name, value]) => [accountId, environment, state, name, value, id])
}
