import type { ApiKey } from '#libs/domain/account/account.js'
import type { Inbox } from '#libs/domain/inbox/inbox.js'
import type { InboxId } from '#libs/domain/ids/typeid.js'
import type { Delivery } from '#libs/domain/webhook/delivery.js'
import type { Change, DeliveryRow, InboxRow, MessageRow } from '#libs/ports/read-model/views.js'
import { isAsking, type Replay } from '#libs/domain/webhook/replay.js'
import { REMOVED, type Webhook } from '#libs/domain/webhook/webhook.js'
import { askingMember, keyListMember, webhookListMember, writeActiveKey } from './key-lists.js'
import { labelScope, listScope, type ViewKeys } from './keys.js'
import { encodeHistoryEntry, encodeRow } from './rows.js'
import { scopeOf } from '#libs/ports/read-model/webhook-scopes.js'
import type { StepWrites } from './step-writes.js'

/** The writes that one change asks for, content aside. */
export function addChange(writes: StepWrites, keys: ViewKeys, change: Change): void {
  switch (change.type) {
    case 'put-inbox':
      putInbox(writes, keys, change.row, change.previous)
      return
    case 'put-message':
      putMessage(writes, keys, change.inboxId, change.row)
      return
    case 'drop-messages':
      dropMessages(writes, keys, change.inboxId)
      return
    case 'put-history': {
      const { inboxId, entry } = change
      writes.add('ZADD', keys.history(inboxId), entry.offset, encodeHistoryEntry(entry))
      return
    }
    case 'put-account':
      writes.add('HSET', keys.accounts, change.account.id, encodeRow(change.account))
      writes.add('ZADD', keys.accountList, 0, change.account.id)
      return
    case 'put-key':
      putKey(writes, keys, change.key)
      return
    case 'put-delivery':
      putDelivery(writes, keys, change.row, change.previous)
      return
    case 'put-replay':
      putReplay(writes, keys, change.replay, change.previous)
      return
    case 'put-webhook-health': {
      const { webhookId } = change.health
      writes.add('HSET', keys.webhookHealth(keys.partitionOf(webhookId)), webhookId, encodeRow(change.health))
      return
    }
    case 'put-webhook':
      putWebhook(writes, keys, change.webhook)
      return
    case 'remove-webhook':
      removeWebhook(writes, keys, change.webhook)
      return
  }
}

export function dropMessages(writes: StepWrites, keys: ViewKeys, inboxId: InboxId): void {
  writes.add('UNLINK', keys.messages(inboxId))
  writes.add('UNLINK', keys.order(inboxId))
}

function putInbox(writes: StepWrites, keys: ViewKeys, row: InboxRow, previous: Inbox | null): void {
  const { inbox } = row
  const partition = keys.partitionOf(inbox.id)
  writes.add('HSET', keys.inboxes(partition), inbox.id, encodeRow(row))
  if (previous?.state === inbox.state) return
  if (previous === null) {
    writes.add('HSET', keys.addresses(partition), inbox.address, inbox.id)
  } else {
    writes.add('ZREM', keys.listing(partition), listScope(previous) + previous.id)
    for (const member of labelMembers(previous)) writes.add('ZREM', keys.labels(partition), member)
    writes.add('ZREM', keys.due(partition), previous.id)
    writes.add('ZREM', keys.leases(partition), previous.id)
  }
  writes.add('ZADD', keys.listing(partition), 0, listScope(inbox) + inbox.id)
  for (const member of labelMembers(inbox)) writes.add('ZADD', keys.labels(partition), 0, member)
  if (inbox.state === 'active') writes.add('ZADD', keys.due(partition), inbox.expiresAt.getTime(), inbox.id)
}

function putMessage(writes: StepWrites, keys: ViewKeys, inboxId: InboxId, row: MessageRow): void {
  const { message, offset } = row
  writes.add('HSET', keys.messages(inboxId), message.id, encodeRow(row))
  if (message.state === 'present') writes.add('ZADD', keys.order(inboxId), offset, message.id)
  else writes.add('ZREM', keys.order(inboxId), message.id)
}

function putKey(writes: StepWrites, keys: ViewKeys, key: ApiKey): void {
  writes.add('HSET', keys.apiKeys, key.id, encodeRow(key))
  writes.add('HSET', keys.keyHashes, key.secretHash, key.id)
  writes.add('ZADD', keys.keyList, 0, keyListMember(key.accountId, key.id))
  if (key.revokedAt === null) writes.add('ZADD', keys.activeKeys, 0, writeActiveKey(key))
  else writes.add('ZREM', keys.activeKeys, writeActiveKey(key))
}

function putDelivery(writes: StepWrites, keys: ViewKeys, row: DeliveryRow, previous: Delivery | null): void {
  const { id, webhookId, state, dueAt } = row.delivery
  writes.add('HSET', keys.deliveries(webhookId), id, encodeRow(row))
  if (previous === null) writes.add('ZADD', keys.deliveryOrder(webhookId), row.offset, id)
  if (previous?.state !== state) {
    if (previous !== null) writes.add('ZREM', keys.deliveriesIn(webhookId, previous.state), id)
    writes.add('ZADD', keys.deliveriesIn(webhookId, state), row.offset, id)
  }
  if (dueAt === null) {
    writes.add('ZREM', keys.dueDeliveries(webhookId), id)
    return
  }
  writes.add('ZADD', keys.dueDeliveries(webhookId), dueAt.getTime(), id)
  writes.add('ZADD LT', keys.dueWebhooks(keys.partitionOf(webhookId)), dueAt.getTime(), webhookId)
}

function putReplay(writes: StepWrites, keys: ViewKeys, replay: Replay, previous: Replay | null): void {
  const { id, webhookId } = replay
  const asking = keys.askingReplays(keys.partitionOf(webhookId))
  const member = askingMember({ webhookId, replayId: id })
  writes.add('HSET', keys.replays(webhookId), id, encodeRow(replay))
  if (previous === null) writes.add('ZADD', keys.replayList(webhookId), 0, id)
  // One that is leased stays so.
  if (isAsking(replay)) writes.add('ZADD NX', asking, 0, member)
  else writes.add('ZREM', asking, member)
}

function putWebhook(writes: StepWrites, keys: ViewKeys, webhook: Webhook): void {
  const member = webhookListMember(scopeOf(webhook), webhook.id)
  writes.add('HSET', keys.webhooks, webhook.id, encodeRow(webhook))
  writes.add('ZADD', keys.webhookList, 0, member)
  if (webhook.state === 'active') writes.add('ZADD', keys.activeWebhooks, 0, member)
  else writes.add('ZREM', keys.activeWebhooks, member)
}

function removeWebhook(writes: StepWrites, keys: ViewKeys, webhook: Webhook): void {
  const member = webhookListMember(scopeOf(webhook), webhook.id)
  writes.add('HSET', keys.webhooks, webhook.id, encodeRow(REMOVED))
  for (const list of [keys.webhookList, keys.activeWebhooks]) writes.add('ZREM', list, member)
}

function labelMembers(inbox: Inbox): string[] {
  return Object.entries(inbox.labels).map(([name, value]) => labelScope(inbox, name, value) + inbox.id)
}
