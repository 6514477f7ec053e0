import type { AccountId, InboxId, KeyId, MessageId } from '#libs/domain/ids/typeid.js'
import type { Address, InboxCreated, InboxEvent, InboxTokenIssued, InboxTokenRevoked } from './events.js'
import { dayOf } from '#libs/domain/account/quota.js'
import type { Fault } from './fault.js'
import { isLive, MAX_TOKENS, type InboxToken } from './token.js'

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
  /** Without deleted messages. */
  messageCount: number
  /** With deleted messages. */
  receivedCount: number
  /** The day of its last message, in days since 1970, UTC, and how many it received on it; null before the first one. */
  receivedOn: { day: number; count: number } | null
  /** In the order in which they were issued. Those that are no longer valid may be missing. */
  tokens: readonly InboxToken[]
}

export interface ActiveInbox extends InboxFacts {
  state: 'active'
  duration: string
  expiresAt: Date
  maxMessages: number
  lastMessageAt: Date | null
  /** Bytes of the sources of its messages, without deleted ones. */
  storedBytes: number
  /** Mails that faults have dropped. */
  droppedCount: number
  faults: readonly Fault[]
  /** The revision that set the faults; 0 for those that it was created with. */
  faultsRevision: number
  /** How often it was changed, with its tokens and faults. */
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

/** A message that a fault dropped is one that was deleted at once. */
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
  if (inbox?.state !== 'active' || event.type === 'InboxErased') return slice
  if ('revision' in event) {
    const { revision } = event
    return revision <= inbox.revision ? slice : { inbox: { ...changed(inbox, event), revision }, message }
  }
  switch (event.type) {
    case 'MessageDropped': {
      if (message !== null) return slice
      const { messageId: id, droppedAt: deletedAt } = event
      const droppedCount = inbox.droppedCount + 1
      return { inbox: { ...inbox, droppedCount }, message: { state: 'deleted', id, deletedAt } }
    }
    case 'MessageReceived': {
      if (message !== null) return slice
      const { messageId: id, receivedAt, size } = event
      const { receivedOn: last } = inbox
      // The clocks of two processes may differ at midnight.
      const day = Math.max(dayOf(receivedAt), last?.day ?? 0)
      return {
        inbox: {
          ...inbox,
          messageCount: inbox.messageCount + 1,
          receivedCount: inbox.receivedCount + 1,
          receivedOn: { day, count: (last?.day === day ? last.count : 0) + 1 },
          storedBytes: inbox.storedBytes + size,
          lastMessageAt: receivedAt,
        },
        message: { state: 'present', id, receivedAt, size },
      }
    }
    case 'MessageDeleted': {
      if (message?.state === 'deleted') return slice
      const { messageId: id, deletedAt } = event
      // A deletion that precedes its message is remembered, so that replaying both gives the same result.
      const messageCount = inbox.messageCount - (message === null ? 0 : 1)
      const storedBytes = inbox.storedBytes - (message?.size ?? 0)
      return { inbox: { ...inbox, messageCount, storedBytes }, message: { state: 'deleted', id, deletedAt } }
    }
    case 'InboxExpired':
      return { inbox: ended(inbox, 'expired', event.expiredAt, null), message: null }
    case 'InboxDeleted':
      return { inbox: ended(inbox, 'deleted', event.deletedAt, event.keyId), message: null }
  }
}

function created(event: InboxCreated): ActiveInbox {
  const { inboxId, type: _type, cause: _cause, ...facts } = event
  const empty = {
    messageCount: 0,
    receivedCount: 0,
    receivedOn: null,
    droppedCount: 0,
    storedBytes: 0,
    lastMessageAt: null,
    tokens: [],
    revision: 0,
  }
  return { ...facts, id: inboxId, state: 'active', faults: event.faults ?? [], faultsRevision: 0, ...empty }
}

function changed(inbox: ActiveInbox, event: Extract<InboxEvent, { revision: number }>): ActiveInbox {
  switch (event.type) {
    case 'InboxChanged': {
      const { lifetime, sealed } = event
      return { ...inbox, ...lifetime, labels: event.inbox.labels, sealed: sealed ?? inbox.sealed }
    }
    case 'InboxTokenIssued':
      return { ...inbox, tokens: withIssued(inbox.tokens, event) }
    case 'InboxTokenRevoked':
      return { ...inbox, tokens: withRevoked(inbox.tokens, event) }
    case 'FaultsSet':
      return { ...inbox, faults: event.faults, faultsRevision: event.revision }
  }
}

/** Tokens that are no longer valid are dropped when the list is full. */
function withIssued(
  tokens: readonly InboxToken[],
  { tokenId: id, hash, access, keyId, issuedAt, expiresAt }: InboxTokenIssued,
): readonly InboxToken[] {
  const kept = tokens.length < MAX_TOKENS ? tokens : tokens.filter((each) => isLive(each, issuedAt))
  return [...kept, { id, hash, access, keyId, issuedAt, expiresAt, revokedAt: null }]
}

function withRevoked(
  tokens: readonly InboxToken[],
  { tokenId, revokedAt }: InboxTokenRevoked,
): readonly InboxToken[] {
  return tokens.map((each) =>
    each.id === tokenId && each.revokedAt === null ? { ...each, revokedAt } : each,
  )
}

function ended(
  inbox: ActiveInbox,
  state: EndedInbox['state'],
  endedAt: Date,
  endedBy: KeyId | null,
): EndedInbox {
  const { id, accountId, environment, keyId, address, labels, isProtected, createdAt } = inbox
  const { messageCount, receivedCount, receivedOn, tokens } = inbox
  const facts = { id, accountId, environment, keyId, address, labels, isProtected, createdAt }
  return { ...facts, messageCount, receivedCount, receivedOn, tokens, state, endedAt, endedBy }
}

/** The inbox at a given time. Past its expiry it has ended, even if there is no InboxExpired event yet. */
export function asOf(inbox: Inbox, now: Date): Inbox {
  if (inbox.state !== 'active' || now < inbox.expiresAt) return inbox
  return ended(inbox, 'expired', inbox.expiresAt, null)
}
