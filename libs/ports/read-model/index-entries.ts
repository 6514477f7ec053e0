import type { ApiKey } from '#libs/domain/account/account.js'
import type { AccountId, DeliveryId, InboxId, KeyId, MessageId, WebhookId } from '#libs/domain/ids/typeid.js'
import type { Address, InboxEvent } from '#libs/domain/inbox/events.js'
import type { ActiveInbox, Inbox } from '#libs/domain/inbox/inbox.js'
import { hasMoreToRequest, type Replay } from '#libs/domain/webhook/replay.js'
import type { Webhook } from '#libs/domain/webhook/webhook.js'
import type { Change, DeliveryRow, EnvironmentMessage, MessageRow } from './views.js'

/*
 * The index entries that follow from a change of the views, for all engines.
 */

/**
 * An entry of an index, by which rows are found other than by id. An adapter maps it to a key, and stores or removes it.
 * It may leave out an index that it does not need, for example the list of ids if it stores rows in that order.
 */
export type IndexEntry =
  | { index: 'addresses'; address: Address; inboxId: InboxId }
  | { index: 'listing'; inbox: Inbox }
  | { index: 'labels'; inbox: Inbox; name: string; value: string }
  /**
   * The inboxes of a label by the number of messages that each has received, except protected ones. An adapter also keeps
   * the totals of each label and `countPeriod`: an entry that is put adds an inbox and its messages, one that is removed
   * subtracts them.
   */
  | { index: 'label-counts'; inbox: Inbox; name: string; value: string }
  | { index: 'due-inboxes'; inboxId: InboxId; expiresAt: Date }
  | { index: 'messages'; inboxId: InboxId; messageId: MessageId; offset: number }
  /** The messages of an environment's inboxes, except those of protected inboxes. */
  | { index: 'environment-messages'; inbox: Inbox; message: EnvironmentMessage }
  /** The deletions of these messages, and the ends of these inboxes. */
  | { index: 'environment-endings'; inbox: Inbox; offset: number }
  | { index: 'accounts'; accountId: AccountId }
  | { index: 'key-hashes'; secretHash: string; keyId: KeyId }
  | { index: 'keys' | 'active-keys'; key: ApiKey }
  | { index: 'webhooks' | 'active-webhooks'; webhook: Webhook }
  | { index: 'deliveries' | 'delivery-states'; row: DeliveryRow }
  | { index: 'due-deliveries'; webhookId: WebhookId; deliveryId: DeliveryId; dueAt: Date }
  | { index: 'replays' | 'pending-replays'; replay: Replay }

/** Removals are made first: an entry in both lists exists afterwards. */
export interface IndexChanges {
  remove: IndexEntry[]
  put: IndexEntry[]
}

/**
 * The index entries that a change removes and puts. None for `drop-messages`: an adapter removes the messages of an inbox
 * together with their index entries.
 */
export function indexChanges(change: Change): IndexChanges {
  switch (change.type) {
    case 'put-inbox': {
      const { row, previous } = change
      if (previous === null) return { remove: [], put: entriesOfInbox(row.inbox) }
      const { inbox } = row
      // The address of an inbox never changes. Its other entries change with its state, its expiry and its labels.
      if (previous.state === 'active' && inbox.state === 'active' && previous.revision === inbox.revision) {
        if (previous.receivedCount === inbox.receivedCount) return { remove: [], put: [] }
        return { remove: countEntries(previous), put: countEntries(inbox) }
      }
      return { remove: listEntries(previous), put: listEntries(inbox) }
    }
    case 'put-message': {
      const { inbox, row, previous } = change
      return {
        remove: previous === null ? [] : entriesOfMessage(inbox, previous),
        put: entriesOfMessage(inbox, row),
      }
    }
    case 'put-account':
      return { remove: [], put: [{ index: 'accounts', accountId: change.account.id }] }
    case 'put-key': {
      const { key } = change
      const { remove, put } = putIf(key.revokedAt === null, { index: 'active-keys', key })
      // The entries of previous secrets stay.
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
      const { remove, put } = putIf(hasMoreToRequest(replay), { index: 'pending-replays', replay })
      if (previous === null) put.push({ index: 'replays', replay })
      return { remove, put }
    }
    case 'put-history': {
      const { inbox, entry } = change
      const isListed = !inbox.isProtected && ENDINGS.has(entry.type)
      return {
        remove: [],
        put: isListed ? [{ index: 'environment-endings', inbox, offset: entry.offset }] : [],
      }
    }
    case 'put-webhook-health':
    case 'drop-messages':
      return { remove: [], put: [] }
  }
}

/** All entries of an inbox, without those of its messages. */
export function entriesOfInbox(inbox: Inbox): IndexEntry[] {
  return [{ index: 'addresses', address: inbox.address, inboxId: inbox.id }, ...listEntries(inbox)]
}

/** Events after which something can't be read any more. */
const ENDINGS: ReadonlySet<InboxEvent['type']> = new Set(['MessageDeleted', 'InboxExpired', 'InboxDeleted'])

/** All entries of a message; none of one that is deleted. */
function entriesOfMessage(inbox: ActiveInbox, { message, offset }: MessageRow): IndexEntry[] {
  if (message.state !== 'present') return []
  const { id: messageId, receivedAt } = message
  const inboxId = inbox.id
  const entries: IndexEntry[] = [{ index: 'messages', inboxId, messageId, offset }]
  if (inbox.isProtected) return entries
  const listed = { inboxId, messageId, receivedAt, offset }
  return [...entries, { index: 'environment-messages', inbox, message: listed }]
}

/** All entries of a delivery. */
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
  return [...entries, ...countEntries(inbox)]
}

function countEntries(inbox: Inbox): IndexEntry[] {
  if (inbox.isProtected) return []
  return Object.entries(inbox.labels).map(([name, value]) => ({ index: 'label-counts', inbox, name, value }))
}

const HOUR_MS = 3_600_000
/** Mail of an inbox that has ended counts for its labels for this time, and up to an hour longer. */
const COUNTED_HOURS = 24

/** The period in which the messages of an inbox are counted: `active`, or the hour in which it ended, since 1970. */
export function countPeriod(inbox: Inbox): string {
  return inbox.state === 'active' ? 'active' : writeHour(hourOf(inbox.endedAt))
}

/** The periods that count for a label. */
export function countedPeriods(now: Date): string[] {
  const current = hourOf(now)
  // Another process may already have ended an inbox in the next hour of its own clock.
  const hours = Array.from({ length: COUNTED_HOURS + 2 }, (_, ago) => writeHour(current + 1 - ago))
  return ['active', ...hours]
}

function hourOf(time: Date): number {
  return Math.floor(time.getTime() / HOUR_MS)
}

function writeHour(hour: number): string {
  return String(hour).padStart(7, '0')
}

function deliveryChanges(row: DeliveryRow, previous: DeliveryRow | null): IndexChanges {
  if (previous === null) return { remove: [], put: entriesOfDelivery(row) }
  const put = dueEntries(row)
  const isSameDueTime = row.delivery.dueAt?.getTime() === previous.delivery.dueAt?.getTime()
  const remove = isSameDueTime ? [] : dueEntries(previous)
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
