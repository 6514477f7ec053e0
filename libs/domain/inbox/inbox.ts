import { accept, refuse, type Decision } from '#libs/domain/events/declare.js'
import type { AccountId, InboxId, KeyId, MessageId } from '#libs/domain/ids/typeid.js'
import type { Address, InboxCreated, InboxEvent, MessageReceived } from './events.js'

/*
 * An inbox: its state and how events change it, its commands and what they lead to, and its lifespan, address and
 * password.
 */

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
  return { ...facts, id: inboxId, state: 'active', messageCount: 0, lastMessageAt: null }
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

export type InboxCommand =
  | (Omit<InboxCreated, 'type' | 'duration' | 'createdAt' | 'expiresAt'> & {
      type: 'CreateInbox'
      lifespan: Lifespan
      retention: Lifespan
      now: Date
    })
  | (Omit<MessageReceived, 'type' | 'receivedAt' | 'inbox'> & { type: 'ReceiveMessage'; now: Date })
  | { type: 'DeleteMessage'; inboxId: InboxId; messageId: MessageId; keyId: KeyId; now: Date }
  | { type: 'DeleteInbox'; inboxId: InboxId; keyId: KeyId; now: Date }
  | { type: 'ExpireInbox'; inboxId: InboxId; now: Date }

/** Why a command was refused. Expected, not an error. */
export type Refusal =
  | { code: 'over-retention'; retention: Lifespan }
  | { code: 'unknown-inbox' }
  | { code: 'inbox-ended'; inbox: EndedInbox }
  | { code: 'inbox-full'; maxMessages: number }
  | { code: 'unknown-message' }

/**
 * Checks a command against the view. The view may lag, and other processes may append meanwhile: the order on the log
 * decides, and `evolve` ignores events that are too late. Neither an event nor a refusal means that there is nothing to
 * change.
 */
export function decide({ inbox, message }: InboxSlice, command: InboxCommand): Decision<InboxEvent, Refusal> {
  if (command.type === 'CreateInbox') return create(command)
  if (inbox === null) return refuse({ code: 'unknown-inbox' })
  const { inboxId, now } = command
  const ofInbox = { inboxId, inbox: { keyId: inbox.keyId, labels: inbox.labels } }

  if (command.type === 'ExpireInbox') {
    const isDue = inbox.state === 'active' && now >= inbox.expiresAt
    if (!isDue) return accept()
    return accept({ type: 'InboxExpired', ...ofInbox, expiredAt: inbox.expiresAt })
  }

  const current = asOf(inbox, now)
  if (command.type === 'DeleteInbox' && current.state === 'deleted') return accept()
  if (current.state !== 'active') return refuse({ code: 'inbox-ended', inbox: current })

  switch (command.type) {
    case 'ReceiveMessage': {
      const { type: _type, now: receivedAt, ...facts } = command
      if (current.messageCount >= current.maxMessages) {
        return refuse({ code: 'inbox-full', maxMessages: current.maxMessages })
      }
      return accept({ type: 'MessageReceived', ...ofInbox, ...facts, receivedAt })
    }
    case 'DeleteMessage': {
      if (message === null) return refuse({ code: 'unknown-message' })
      if (message.state === 'deleted') return accept()
      const { messageId, keyId } = command
      return accept({ type: 'MessageDeleted', ...ofInbox, messageId, keyId, deletedAt: now })
    }
    case 'DeleteInbox':
      return accept({ type: 'InboxDeleted', ...ofInbox, keyId: command.keyId, deletedAt: now })
  }
}

/** Exported so that a caller can check it before it creates a key for an inbox that would be refused. */
export function isOverRetention(lifespan: Lifespan, retention: Lifespan): boolean {
  return lifespan.ms > retention.ms
}

function create(command: Extract<InboxCommand, { type: 'CreateInbox' }>): Decision<InboxEvent, Refusal> {
  const { type: _type, lifespan, retention, now, ...facts } = command
  if (isOverRetention(lifespan, retention)) return refuse({ code: 'over-retention', retention })
  return accept({
    ...facts,
    type: 'InboxCreated',
    duration: lifespan.text,
    createdAt: now,
    expiresAt: new Date(now.getTime() + lifespan.ms),
  })
}

/** How long an inbox lives, in the unit that the client chose. */
export interface Lifespan {
  /** A whole number, without leading zeros, and one of m h d w: `30m`, `24h`, `7d`, `2w`. */
  text: string
  ms: number
}

/** The units that a duration may have. */
export const UNIT_MS = { m: 60_000, h: 3_600_000, d: 86_400_000, w: 604_800_000 } as const
const MIN_LIFESPAN_MS = UNIT_MS.m
const DEFAULT: Lifespan = { text: '24h', ms: 24 * UNIT_MS.h }

/** Null if the text is malformed or the time is under a minute. For a very long number of digits, ms is Infinity. */
export function parseLifespan(text: string): Lifespan | null {
  const match = /^(\d+)([mhdw])$/.exec(text)
  if (match === null) return null
  const [, count = '', unit] = match
  if (unit !== 'm' && unit !== 'h' && unit !== 'd' && unit !== 'w') return null
  const ms = Number(count) * UNIT_MS[unit]
  return ms < MIN_LIFESPAN_MS ? null : { text: `${count.replace(/^0+/, '')}${unit}`, ms }
}

/** A day, or the retention if that is shorter. */
export function defaultLifespan(retention: Lifespan): Lifespan {
  return retention.ms < DEFAULT.ms ? retention : DEFAULT
}

const ALPHABET = '0123456789abcdefghjkmnpqrstvwxyz'
const LOCAL_PART_LENGTH = 20

/** Random bytes that an address is made from: one for each character, of which five bits are used. */
export const ADDRESS_BYTES = LOCAL_PART_LENGTH

/** Makes an address: 20 characters of Crockford's base32, which are 100 random bits. */
export function makeAddress(random: Uint8Array, domain: string): Address {
  if (random.length !== ADDRESS_BYTES) throw new RangeError(`an address takes ${ADDRESS_BYTES} bytes`)
  let localPart = ''
  for (const byte of random) localPart += ALPHABET.charAt(byte & 31)
  return `${localPart}@${domain.toLowerCase()}` as Address
}

/**
 * The generated address that a recipient means: case is ignored and a tag (`local+tag@`, RFC 5233) removed. Null if it
 * can't be a generated address.
 */
export function addressOfRecipient(recipient: string, domain: string): Address | null {
  const at = recipient.lastIndexOf('@')
  if (at < 0 || recipient.slice(at + 1).toLowerCase() !== domain.toLowerCase()) return null
  const [localPart = ''] = recipient.slice(0, at).toLowerCase().split('+', 1)
  if (localPart.length !== LOCAL_PART_LENGTH) return null
  for (const character of localPart) if (!ALPHABET.includes(character)) return null
  return `${localPart}@${domain.toLowerCase()}` as Address
}

/** Random bytes that a password is made from. */
export const PASSWORD_BYTES = 16

const DIGITS = 26

/** The password of a protected inbox: 128 random bits as 26 digits of base32hex (RFC 4648, section 7), lower case. */
export function makePassword(random: Uint8Array): string {
  if (random.length !== PASSWORD_BYTES) throw new RangeError(`a password takes ${PASSWORD_BYTES} bytes`)
  let bits = 0n
  for (const byte of random) bits = (bits << 8n) | BigInt(byte)
  return bits.toString(32).padStart(DIGITS, '0')
}
