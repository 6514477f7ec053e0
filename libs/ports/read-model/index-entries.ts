import type { ApiKey } from '#libs/domain/account/account.js'
import type { AccountId, DeliveryId, InboxId, KeyId, MessageId, WebhookId } from '#libs/domain/ids/typeid.js'
import type { Address } from '#libs/domain/inbox/address.js'
import type { Inbox } from '#libs/domain/inbox/inbox.js'
import { isAsking, type Replay } from '#libs/domain/webhook/replay.js'
import type { Webhook } from '#libs/domain/webhook/webhook.js'
import type { Change, DeliveryRow } from './views.js'

/**
 * An entry of an index: what rows are found by, other than their id. An adapter maps it to a key, and stores or removes
 * it. It may leave out an index that it does not need, as one that lists the ids of rows which it keeps in order.
 */
export type IndexEntry =
  | { index: 'addresses'; address: Address; inboxId: InboxId }
  | { index: 'listing'; inbox: Inbox }
  | { index: 'labels'; inbox: Inbox; name: string; value: string }
  | { index: 'due-inboxes'; inboxId: InboxId; expiresAt: Date }
  | { index: 'messages'; inboxId: InboxId; messageId: MessageId; offset: number }
  | { index: 'accounts'; accountId: AccountId }
  | { index: 'key-hashes'; secretHash: string; keyId: KeyId }
  | { index: 'keys' | 'active-keys'; key: ApiKey }
  | { index: 'webhooks' | 'active-webhooks'; webhook: Webhook }
  | { index: 'deliveries' | 'delivery-states'; row: DeliveryRow }
  | { index: 'due-deliveries'; webhookId: WebhookId; deliveryId: DeliveryId; dueAt: Date }
  | { index: 'replays' | 'asking-replays'; replay: Replay }

/** Removals come first. No entry is in both. */
export interface IndexChanges {
  remove: IndexEntry[]
  put: IndexEntry[]
}

/**
 * The index entries that a change removes and puts. None for `drop-messages`: an adapter removes all messages of an
 * inbox together with their index.
 */
export function indexChanges(change: Change): IndexChanges {
  switch (change.type) {
    case 'put-inbox': {
      const { row, previous } = change
      if (previous === null) return { remove: [], put: entriesOfInbox(row.inbox) }
      // An inbox keeps its address. Its other entries depend on nothing but its state.
      if (previous.state === row.inbox.state) return { remove: [], put: [] }
      return { remove: listEntries(previous), put: listEntries(row.inbox) }
    }
    case 'put-message': {
      const { message, offset } = change.row
      const entry: IndexEntry = { index: 'messages', inboxId: change.inboxId, messageId: message.id, offset }
      return putIf(message.state === 'present', entry)
    }
    case 'put-account':
      return { remove: [], put: [{ index: 'accounts', accountId: change.account.id }] }
    case 'put-key': {
      const { key } = change
      const { remove, put } = putIf(key.revokedAt === null, { index: 'active-keys', key })
      // A former secret still finds its key.
      put.push({ index: 'key-hashes', secretHash: key.secretHash, keyId: key.id }, { index: 'keys', key })
      return { remove, put }
    }
    case 'put-webhook': {
      const { webhook } = change
      const { remove, put } = putIf(webhook.state === 'active', { index: 'active-webhooks', webhook })
      put.push({ index: 'webhooks', webhook })
      return { remove, put }
    }
    case 'remove-webhook': {
      const { webhook } = change
      return {
        remove: [
          { index: 'webhooks', webhook },
          { index: 'active-webhooks', webhook },
        ],
        put: [],
      }
    }
    case 'put-delivery':
      return deliveryChanges(change.row, change.previous && { ...change.row, delivery: change.previous })
    case 'put-replay': {
      const { replay, previous } = change
      const { remove, put } = putIf(isAsking(replay), { index: 'asking-replays', replay })
      if (previous === null) put.push({ index: 'replays', replay })
      return { remove, put }
    }
    case 'put-history':
    case 'put-webhook-health':
    case 'drop-messages':
      return { remove: [], put: [] }
  }
}

/** Every entry of an inbox, its messages aside. */
export function entriesOfInbox(inbox: Inbox): IndexEntry[] {
  return [{ index: 'addresses', address: inbox.address, inboxId: inbox.id }, ...listEntries(inbox)]
}

/** Every entry of a delivery. */
export function entriesOfDelivery(row: DeliveryRow): IndexEntry[] {
  return [{ index: 'deliveries', row }, { index: 'delivery-states', row }, ...dueEntries(row)]
}

function listEntries(inbox: Inbox): IndexEntry[] {
  const entries: IndexEntry[] = [{ index: 'listing', inbox }]
  for (const [name, value] of Object.entries(inbox.labels)) {
    entries.push({ index: 'labels', inbox, name, value })
  }
  if (inbox.state === 'active') {
    entries.push({ index: 'due-inboxes', inboxId: inbox.id, expiresAt: inbox.expiresAt })
  }
  return entries
}

function deliveryChanges(row: DeliveryRow, previous: DeliveryRow | null): IndexChanges {
  if (previous === null) return { remove: [], put: entriesOfDelivery(row) }
  const put = dueEntries(row)
  const isDueThen = row.delivery.dueAt?.getTime() === previous.delivery.dueAt?.getTime()
  const remove = isDueThen ? [] : dueEntries(previous)
  if (row.delivery.state !== previous.delivery.state) {
    remove.push({ index: 'delivery-states', row: previous })
    put.push({ index: 'delivery-states', row })
  }
  return { remove, put }
}

function dueEntries({ delivery: { id, webhookId, dueAt } }: DeliveryRow): IndexEntry[] {
  return dueAt === null ? [] : [{ index: 'due-deliveries', webhookId, deliveryId: id, dueAt }]
}

function putIf(isWanted: boolean, entry: IndexEntry): IndexChanges {
  return isWanted ? { remove: [], put: [entry] } : { remove: [entry], put: [] }
}
