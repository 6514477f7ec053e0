import type { AccountId, InboxId, KeyId, MessageId } from '#libs/domain/ids/typeid.js'
import type { Address, InboxChanged, InboxCreated, InboxEvent } from './events.js'

interface InboxFacts {
  id: InboxId
  accountId: AccountId
  environment: string
  keyId: KeyId
  address: Address
  labels: Readonly<Record<string, string>>
  /** Whether reading its mail requires a password. */
  isProtected: boolean
  createdAt: Date
  messageCount: number
}

export interface ActiveInbox extends InboxFacts {
  state: 'active'
  duration: string
  expiresAt: Date
  maxMessages: number
  lastMessageAt: Date | null
  /** How often it was changed. */
  revision: number
  sealed: Uint8Array
}

/** An inbox after its end, without content or anything sealed. */
export interface EndedInbox extends InboxFacts {
  state: 'deleted' | 'expired'
  endedAt: Date
  /** The key that deleted it; null if it expired. */
  endedBy: KeyId | null
}

export type Inbox = ActiveInbox | EndedInbox

export type Message =
  | { state: 'present'; id: MessageId; receivedAt: Date; size: number }
  | { state: 'deleted'; id: MessageId; deletedAt: Date }

/** The state that one event or command concerns: an inbox and, if it names one, a message. */
export interface InboxSlice {
  inbox: Inbox | null
  message: Message | null
}

/**
 * Total over all events in any order, and idempotent: returns the same slice object for an event that is repeated, late,
 * or about something that no longer exists.
 */
export function evolve(slice: InboxSlice, event: InboxEvent): InboxSlice {
  const { inbox, message } = slice
  if (event.type === 'InboxCreated') return inbox === null ? { inbox: created(event), message } : slice
  if (inbox?.state !== 'active') return slice
  switch (event.type) {
    case 'InboxChanged':
      return event.revision <= inbox.revision ? slice : { inbox: changed(inbox, event), message }
    case 'MessageReceived': {
      if (message !== null) return slice
      const { messageId: id, receivedAt, size } = event
      return {
        inbox: { ...inbox, messageCount: inbox.messageCount + 1, lastMessageAt: receivedAt },
        message: { state: 'present', id, receivedAt, size },
      }
    }
    case 'MessageDeleted': {
      if (message?.state === 'deleted') return slice
      const { messageId: id, deletedAt } = event
      // A deletion that precedes its message is remembered, so that replaying both gives the same result.
      const messageCount = inbox.messageCount - (message === null ? 0 : 1)
      return { inbox: { ...inbox, messageCount }, message: { state: 'deleted', id, deletedAt } }
    }
    case 'InboxExpired':
      return { inbox: ended(inbox, 'expired', event.expiredAt, null), message: null }
    case 'InboxDeleted':
      return { inbox: ended(inbox, 'deleted', event.deletedAt, event.keyId), message: null }
  }
}

function created(event: InboxCreated): ActiveInbox {
  const { inboxId, type: _type, ...facts } = event
  return { ...facts, id: inboxId, state: 'active', messageCount: 0, lastMessageAt: null, revision: 0 }
}

function changed(
  inbox: ActiveInbox,
  { revision, lifetime, sealed, inbox: { labels } }: InboxChanged,
): ActiveInbox {
  return { ...inbox, ...lifetime, revision, labels, sealed: sealed ?? inbox.sealed }
}

function ended(
  inbox: ActiveInbox,
  state: EndedInbox['state'],
  endedAt: Date,
  endedBy: KeyId | null,
): EndedInbox {
  const { id, accountId, environment, keyId, address, labels, isProtected, createdAt, messageCount } = inbox
  const kept = { id, accountId, environment, keyId, address, labels, isProtected, createdAt, messageCount }
  return { ...kept, state, endedAt, endedBy }
}

/** The inbox at a given time. Past its expiry it has ended, even if there is no InboxExpired event yet. */
export function asOf(inbox: Inbox, now: Date): Inbox {
  if (inbox.state !== 'active' || now < inbox.expiresAt) return inbox
  return ended(inbox, 'expired', inbox.expiresAt, null)
}
