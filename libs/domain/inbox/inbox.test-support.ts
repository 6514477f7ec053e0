import fc from 'fast-check'
import { anyEventOf } from '#libs/domain/event-sourcing/any-event.test-support.js'
import { specificationOf } from '#libs/domain/event-sourcing/specification.test-support.js'
import { idFromBytes, type InboxId, type KeyId, type MessageId } from '#libs/domain/ids/typeid.js'
import {
  INBOX_EVENTS,
  type InboxChanged,
  type InboxCreated,
  type InboxDeleted,
  type InboxEvent,
  type InboxExpired,
  type FaultsSet,
  type InboxTokenIssued,
  type InboxTokenRevoked,
  type MessageDeleted,
  type MessageDropped,
  type MessageReceived,
} from './events.js'
import { decide, type InboxCommand, type TokenCommand } from './decide.js'
import type { Fault } from './fault.js'
import { evolve, type Inbox, type InboxSlice, type Message } from './inbox.js'
import { addressOfRecipient } from './new-inbox.js'
import type { TokenId } from './token.js'

/** An inbox with all its messages, after a history of events. */
export interface InboxView {
  inbox: Inbox | null
  messages: ReadonlyMap<MessageId, Message>
}

export const NOTHING: InboxView = { inbox: null, messages: new Map() }

export function sliceFor({ inbox, messages }: InboxView, what: InboxEvent | InboxCommand): InboxSlice {
  return { inbox, message: 'messageId' in what ? (messages.get(what.messageId) ?? null) : null }
}

/** `given(created).when(deleteInbox(at)).then([deleted(at)])` */
export const { given, replay } = specificationOf({
  initial: NOTHING,
  evolve: step,
  decide: (view, command: InboxCommand) => decide(sliceFor(view, command), command),
})

/** Applies one event. An inbox that has ended has no messages. */
function step(view: InboxView, event: InboxEvent): InboxView {
  const next = evolve(sliceFor(view, event), event)
  if (next.inbox !== null && next.inbox.state !== 'active') return { inbox: next.inbox, messages: new Map() }
  if (next.message === null) return { ...view, inbox: next.inbox }
  return { inbox: next.inbox, messages: new Map(view.messages).set(next.message.id, next.message) }
}

/** Some minutes after the example's inbox was created. */
export function minute(minutes: number): Date {
  return new Date(Date.UTC(2026, 0, 1) + minutes * 60_000)
}

export const INBOX_ID: InboxId = idFromBytes('inb', Buffer.alloc(16, 1))
export const KEY_ID: KeyId = idFromBytes('key', Buffer.alloc(16, 2))
/** The key that deletes the example's inbox and messages. */
export const OTHER_KEY_ID: KeyId = idFromBytes('key', Buffer.alloc(16, 4))
export const MESSAGE_ID = messageId(1)
export const OTHER_MESSAGE_ID = messageId(2)
const MAX_MESSAGES = 2
export const LIFESPAN = { text: '30m', ms: 30 * 60_000 }

export function messageId(number: number): MessageId {
  return idFromBytes('msg', Buffer.alloc(16, number))
}

const address = addressOfRecipient('k3v9x2m4q8wz7t5b6n0c@mayfly.test', 'mayfly.test')
if (address === null) throw new Error('the example has no address')

/** The example's inbox, which lives for half an hour and holds at most two messages. */
export const FACTS = {
  inboxId: INBOX_ID,
  accountId: idFromBytes('acc', Buffer.alloc(16, 3)),
  environment: 'staging',
  keyId: KEY_ID,
  address,
  labels: { run: '42' },
  maxMessages: MAX_MESSAGES,
  isProtected: true,
  faults: null,
  cause: null,
  sealed: Buffer.from('sealed details'),
}

const MAIL = {
  ...{ size: 5_123, digest: 'ab'.repeat(32), sealed: Buffer.from('sealed mail') },
  ...{ duplicateOf: null, fingerprint: null },
}

export const created: InboxCreated = {
  type: 'InboxCreated',
  ...FACTS,
  duration: LIFESPAN.text,
  createdAt: minute(0),
  expiresAt: minute(30),
}

/** The properties that all events of the example's inbox have. */
const ABOUT = { inboxId: INBOX_ID, inbox: { keyId: KEY_ID, labels: FACTS.labels } }

export function received(at: Date, id = MESSAGE_ID): MessageReceived {
  return { type: 'MessageReceived', ...ABOUT, messageId: id, receivedAt: at, ...MAIL }
}

export function dropped(at: Date, id = MESSAGE_ID): MessageDropped {
  const { size, digest } = MAIL
  return { type: 'MessageDropped', ...ABOUT, messageId: id, droppedAt: at, size, digest }
}

/** A fault that rejects every recipient, except for `facts`. */
export function makeFault(facts: Partial<Fault> = {}): Fault {
  return {
    ...{ stage: 'rcpt', action: 'reject', code: null, enhancedCode: null, text: null, delayMs: null },
    ...{ firstN: null, everyN: null, probability: null, seed: null },
    ...facts,
  }
}

export function faultsSet(at: Date, faults: readonly Fault[], revision = 1): FaultsSet {
  return { type: 'FaultsSet', ...ABOUT, keyId: OTHER_KEY_ID, faults, setAt: at, revision }
}

export function messageDeleted(at: Date, id = MESSAGE_ID): MessageDeleted {
  return { type: 'MessageDeleted', ...ABOUT, messageId: id, keyId: OTHER_KEY_ID, deletedAt: at }
}

/** Changes nothing, except for `facts`. */
export function changed(at: Date, facts: Partial<InboxChanged> = {}): InboxChanged {
  const none = { revision: 1, lifetime: null, sealed: null }
  return { type: 'InboxChanged', ...ABOUT, keyId: OTHER_KEY_ID, changedAt: at, ...none, ...facts }
}

/** The example's inbox with other labels, as in its events. */
export function labelled(labels: Readonly<Record<string, string>>): InboxChanged['inbox'] {
  return { keyId: KEY_ID, labels }
}

export function tokenId(number: number): TokenId {
  return idFromBytes('tok', Buffer.alloc(16, number))
}

/** A token for the example's inbox that is valid for ten minutes, except for `facts`. */
export function tokenIssued(at: Date, facts: Partial<InboxTokenIssued> = {}): InboxTokenIssued {
  const token = { tokenId: tokenId(1), keyId: OTHER_KEY_ID, hash: 'cd'.repeat(32), access: 'read' } as const
  const expiresAt = new Date(at.getTime() + 10 * 60_000)
  return { type: 'InboxTokenIssued', ...ABOUT, ...token, issuedAt: at, expiresAt, revision: 1, ...facts }
}

export function tokenRevoked(at: Date, facts: Partial<InboxTokenRevoked> = {}): InboxTokenRevoked {
  const token = { tokenId: tokenId(1), keyId: OTHER_KEY_ID, revision: 2 }
  return { type: 'InboxTokenRevoked', ...ABOUT, ...token, revokedAt: at, ...facts }
}

type IssueToken = Extract<TokenCommand, { type: 'IssueToken' }>

/** The command for `tokenIssued`, except for `wanted`. */
export function issueToken(now: Date, wanted: Partial<IssueToken> = {}): IssueToken {
  const { inboxId, tokenId, keyId, hash, access } = tokenIssued(now)
  const facts = { inboxId, tokenId, keyId, hash, access, lifeMs: 10 * 60_000 }
  return { type: 'IssueToken', ...facts, now, ...wanted }
}

export function revokeToken(now: Date, id = tokenId(1)): InboxCommand {
  return { type: 'RevokeToken', inboxId: INBOX_ID, keyId: OTHER_KEY_ID, tokenId: id, now }
}

export function deleted(at: Date): InboxDeleted {
  return { type: 'InboxDeleted', ...ABOUT, keyId: OTHER_KEY_ID, deletedAt: at }
}

export const expired: InboxExpired = { type: 'InboxExpired', ...ABOUT, expiredAt: minute(30) }

export function createInbox(now: Date, retention = LIFESPAN): InboxCommand {
  return { type: 'CreateInbox', ...FACTS, lifespan: LIFESPAN, retention, now }
}

type ChangeInbox = Extract<InboxCommand, { type: 'ChangeInbox' }>

/** Changes nothing, except for `wanted`. The retention is an hour. */
export function changeInbox(now: Date, wanted: Partial<ChangeInbox> = {}): InboxCommand {
  const retention = { text: '1h', ms: 60 * 60_000 }
  const facts = { inboxId: INBOX_ID, keyId: OTHER_KEY_ID, lifespan: null, labels: null, sealed: null }
  return { type: 'ChangeInbox', ...facts, retention, now, ...wanted }
}

export function receiveMessage(now: Date, id = MESSAGE_ID): InboxCommand {
  return { type: 'ReceiveMessage', inboxId: INBOX_ID, messageId: id, ...MAIL, now }
}

export function deleteMessage(now: Date, id = MESSAGE_ID): InboxCommand {
  return { type: 'DeleteMessage', inboxId: INBOX_ID, messageId: id, keyId: OTHER_KEY_ID, now }
}

export function deleteInbox(now: Date): InboxCommand {
  return { type: 'DeleteInbox', inboxId: INBOX_ID, keyId: OTHER_KEY_ID, now }
}

export function expireInbox(now: Date): InboxCommand {
  return { type: 'ExpireInbox', inboxId: INBOX_ID, now }
}

/** Any time that RFC 3339 can express, to the millisecond. */
export const anyTime = fc.date({
  min: new Date('0001-01-01T00:00:00.000Z'),
  max: new Date('9999-12-31T23:59:59.999Z'),
  noInvalidDate: true,
})

export const anyBytes = fc.uint8Array({ maxLength: 200 }).map((bytes) => Buffer.from(bytes))

export function anyId<Prefix extends string>(prefix: Prefix) {
  return fc.uint8Array({ minLength: 16, maxLength: 16 }).map((bytes) => idFromBytes(prefix, bytes))
}

const values = { inbox_id: fc.constant(INBOX_ID), environment: fc.constantFrom('staging', 'production') }
const anyCreated = anyEventOf({ InboxCreated: INBOX_EVENTS.InboxCreated }, values)
export const anyInboxEvent = anyEventOf(INBOX_EVENTS, values)

/** Events of one inbox in any order, including early, late and repeated ones. */
export const anySequence = fc.array(anyInboxEvent, { maxLength: 20 })

/**
 * Histories that a log may contain: the creation of the inbox comes first, then all other events in any order and any
 * number of times.
 */
export const anyHistory = fc
  .tuple(anyCreated, anySequence)
  .map(([first, rest]): InboxEvent[] => [first, ...rest])
