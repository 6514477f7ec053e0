import { whenThen } from '#libs/domain/events/given-when-then.js'
import { idFromBytes, type InboxId, type KeyId, type MessageId } from '#libs/domain/ids/typeid.js'
import { addressReached } from './address.js'
import { decide, type InboxCommand } from './decide.js'
import type {
  InboxCreated,
  InboxDeleted,
  InboxEvent,
  InboxExpired,
  MessageDeleted,
  MessageReceived,
} from './events.js'
import { evolve, type Inbox, type InboxSlice, type Message } from './inbox.js'

/** An inbox with all its messages, as a history leaves them. */
export interface InboxView {
  inbox: Inbox | null
  messages: ReadonlyMap<MessageId, Message>
}

export const NOTHING: InboxView = { inbox: null, messages: new Map() }

export function replay(history: readonly InboxEvent[], before: InboxView = NOTHING): InboxView {
  return history.reduce(step, before)
}

/** One event further. What has ended has no messages. */
function step(view: InboxView, event: InboxEvent): InboxView {
  const next = evolve(sliceFor(view, event), event)
  if (next.inbox !== null && next.inbox.state !== 'active') return { inbox: next.inbox, messages: new Map() }
  if (next.message === null) return { ...view, inbox: next.inbox }
  return { inbox: next.inbox, messages: new Map(view.messages).set(next.message.id, next.message) }
}

export function sliceFor({ inbox, messages }: InboxView, what: InboxEvent | InboxCommand): InboxSlice {
  return { inbox, message: 'messageId' in what ? (messages.get(what.messageId) ?? null) : null }
}

/** `given(created).when(deleteInbox(at)).then([deleted(at)])` */
export function given(...history: InboxEvent[]) {
  const view = replay(history)
  return { ...whenThen((command: InboxCommand) => decide(sliceFor(view, command), command)), view }
}

/** A moment of the example: minutes after the inbox was made. */
export function minute(minutes: number): Date {
  return new Date(Date.UTC(2026, 0, 1) + minutes * 60_000)
}

export const INBOX_ID: InboxId = idFromBytes('inb', Buffer.alloc(16, 1))
export const KEY_ID: KeyId = idFromBytes('key', Buffer.alloc(16, 2))
/** The key that deletes what the example's key has created. */
export const OTHER_KEY_ID: KeyId = idFromBytes('key', Buffer.alloc(16, 4))
export const MESSAGE_ID = messageId(1)
export const OTHER_MESSAGE_ID = messageId(2)
const MAX_MESSAGES = 2
export const LIFESPAN = { text: '30m', ms: 30 * 60_000 }

export function messageId(number: number): MessageId {
  return idFromBytes('msg', Buffer.alloc(16, number))
}

const address = addressReached('k3v9x2m4q8wz7t5b6n0c@mayfly.test', 'mayfly.test')
if (address === null) throw new Error('the example has no address')

/** What its maker says of the inbox of the example, which lives half an hour and holds two messages. */
export const FACTS = {
  inboxId: INBOX_ID,
  accountId: idFromBytes('acc', Buffer.alloc(16, 3)),
  environment: 'staging',
  keyId: KEY_ID,
  address,
  labels: { run: '42' },
  maxMessages: MAX_MESSAGES,
  isProtected: true,
  sealed: Buffer.from('sealed details'),
}

const MAIL = { size: 5_123, digest: 'ab'.repeat(32), sealed: Buffer.from('sealed mail') }

export const created: InboxCreated = {
  type: 'InboxCreated',
  ...FACTS,
  duration: LIFESPAN.text,
  createdAt: minute(0),
  expiresAt: minute(30),
}

/** What the events of the example's inbox say of it. */
const ABOUT = { inboxId: INBOX_ID, inbox: { keyId: KEY_ID, labels: FACTS.labels } }

export function received(at: Date, id = MESSAGE_ID): MessageReceived {
  return { type: 'MessageReceived', ...ABOUT, messageId: id, receivedAt: at, ...MAIL }
}

export function messageDeleted(at: Date, id = MESSAGE_ID): MessageDeleted {
  return { type: 'MessageDeleted', ...ABOUT, messageId: id, keyId: OTHER_KEY_ID, deletedAt: at }
}

export function deleted(at: Date): InboxDeleted {
  return { type: 'InboxDeleted', ...ABOUT, keyId: OTHER_KEY_ID, deletedAt: at }
}

export const expired: InboxExpired = { type: 'InboxExpired', ...ABOUT, expiredAt: minute(30) }

export function createInbox(now: Date, retention = LIFESPAN): InboxCommand {
  return { type: 'CreateInbox', ...FACTS, lifespan: LIFESPAN, retention, now }
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
