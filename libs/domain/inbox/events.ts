import Type from 'typebox'
import {
  added,
  boolean,
  count,
  event,
  flat,
  id,
  labels,
  named,
  oneOf,
  optional,
  plain,
  sealedBytes,
  sealedText,
  sha256,
  text,
  time,
  type AnyFields,
  type EventDeclaration,
  type EventOf,
  type ValueOf,
} from '#libs/domain/event-sourcing/declare.js'
import { faults } from './fault.js'
import { TOKEN_ACCESS } from './token.js'

/** An address of Mayfly: lower case, without a tag. */
export type Address = string & { readonly __address: true }

/** The key that created the inbox, and the inbox's labels, by which usage is counted. */
const attribution = { keyId: named('inbox_key_id', id('key')), labels }

/** Null in events recorded before usage was counted. */
const inbox = optional(flat(attribution), null)

/**
 * What streams and webhooks send of an event. `message` has the mail, and is sent only while the inbox is active and has
 * the message. The others have only ids and a time, and webhooks send them even after the inbox has ended.
 */
export type BodyKind = 'message' | 'deleted-message' | 'ended-inbox'

interface Publication<Fields> {
  /** Its name in the API and in usage figures. */
  publicName: string
  /** The property with the time at which it happened. */
  time: { [Name in keyof Fields]: ValueOf<Fields[Name]> extends Date ? Name : never }[keyof Fields] & string
  /** How streams and webhooks send it; null if only the history has it. */
  sent: { body: BodyKind; summary: string } | null
}

function inboxEvent<Fields extends AnyFields, const Public extends Publication<Fields>>(
  name: string,
  publication: Public,
  fields: Fields,
  options: Partial<Pick<EventDeclaration, 'contentType'>> = {},
): EventDeclaration<Fields> & Public {
  return { ...event(name, fields, options), ...publication }
}

/** The events of an inbox. Its content and details are sealed with its key (docs/events.md). */
export const INBOX_EVENTS = {
  InboxCreated: inboxEvent(
    'inbox.created',
    { publicName: 'inbox.created', time: 'createdAt', sent: null },
    {
      inboxId: id('inb'),
      accountId: id('acc'),
      environment: text,
      keyId: id('key'),
      address: plain(Type.Unsafe<Address>(Type.String())),
      duration: text,
      labels,
      maxMessages: count,
      /** Whether reading its mail requires a password. */
      isProtected: named('password_protected', added(boolean, false)),
      createdAt: time,
      expiresAt: time,
      /** The default faults of its environment; null if there are none. */
      faults: optional(faults, null),
      /** The sealed InboxDetails. */
      sealed: sealedText,
    },
  ),

  /** The client changed what it may choose of an inbox. */
  InboxChanged: inboxEvent(
    'inbox.changed',
    { publicName: 'inbox.changed', time: 'changedAt', sent: null },
    {
      inboxId: id('inb'),
      /** The key that changed the inbox. */
      keyId: id('key'),
      changedAt: time,
      /** The number of changes of the inbox, with this one. If two changes have the same, the first one on the log counts. */
      revision: count,
      /** Null if they stay. */
      lifetime: optional(flat({ duration: text, expiresAt: time }), null),
      /** The newly sealed InboxDetails; null if they stay. */
      sealed: optional(sealedText, null),
      /** With the labels after the change, all of them. */
      inbox: flat(attribution),
    },
  ),

  /** A secret that can access this inbox and nothing else. */
  InboxTokenIssued: inboxEvent(
    'inbox.token-issued',
    { publicName: 'token.issued', time: 'issuedAt', sent: null },
    {
      inboxId: id('inb'),
      tokenId: id('tok'),
      /** The key that issued it. */
      keyId: id('key'),
      /** Of the secret, which is not stored. */
      hash: named('secret_hash', sha256),
      access: oneOf(TOKEN_ACCESS),
      issuedAt: time,
      /** The token is invalid from then on, or from the end of the inbox if that comes first. */
      expiresAt: time,
      /** As in InboxChanged: tokens that are issued and revoked are changes too. */
      revision: count,
      inbox: flat(attribution),
    },
  ),

  InboxTokenRevoked: inboxEvent(
    'inbox.token-revoked',
    { publicName: 'token.revoked', time: 'revokedAt', sent: null },
    {
      inboxId: id('inb'),
      tokenId: id('tok'),
      /** The key that revoked it. */
      keyId: id('key'),
      revokedAt: time,
      revision: count,
      inbox: flat(attribution),
    },
  ),

  /** Replaces all faults of the inbox. */
  FaultsSet: inboxEvent(
    'inbox.faults-set',
    { publicName: 'faults.set', time: 'setAt', sent: null },
    {
      inboxId: id('inb'),
      /** The key that set them. */
      keyId: id('key'),
      faults,
      setAt: time,
      /** As in InboxChanged: this is a change too. */
      revision: count,
      inbox: flat(attribution),
    },
  ),

  MessageReceived: inboxEvent(
    'inbox.message-received',
    {
      publicName: 'message.received',
      time: 'receivedAt',
      sent: { body: 'message', summary: 'A message was received' },
    },
    {
      inboxId: id('inb'),
      messageId: id('msg'),
      receivedAt: time,
      /** Bytes of the mail's source. */
      size: count,
      /** Of the sealed bytes. */
      digest: sha256,
      /** The sealed envelope and source. */
      sealed: sealedBytes,
      /** The message that this one repeats, because of a fault that duplicates; null otherwise. */
      duplicateOf: optional(id('msg'), null),
      inbox,
    },
    { contentType: 'application/cbor' },
  ),

  /** A mail that was accepted and dropped, because of a fault. Its content is not stored. */
  MessageDropped: inboxEvent(
    'inbox.message-dropped',
    { publicName: 'message.dropped', time: 'droppedAt', sent: null },
    {
      inboxId: id('inb'),
      messageId: id('msg'),
      droppedAt: time,
      /** Bytes of the mail's source. */
      size: count,
      /** Of the mail's source. */
      digest: sha256,
      inbox: flat(attribution),
    },
  ),

  MessageDeleted: inboxEvent(
    'inbox.message-deleted',
    {
      publicName: 'message.deleted',
      time: 'deletedAt',
      sent: { body: 'deleted-message', summary: 'A message was deleted' },
    },
    {
      inboxId: id('inb'),
      messageId: id('msg'),
      /** The key that deleted the message. */
      keyId: id('key'),
      deletedAt: time,
      inbox,
    },
  ),

  InboxExpired: inboxEvent(
    'inbox.expired',
    {
      publicName: 'inbox.expired',
      time: 'expiredAt',
      sent: { body: 'ended-inbox', summary: 'An inbox expired' },
    },
    { inboxId: id('inb'), expiredAt: time, inbox },
  ),

  InboxDeleted: inboxEvent(
    'inbox.deleted',
    {
      publicName: 'inbox.deleted',
      time: 'deletedAt',
      sent: { body: 'ended-inbox', summary: 'An inbox was deleted' },
    },
    {
      inboxId: id('inb'),
      /** The key that deleted the inbox. */
      keyId: id('key'),
      deletedAt: time,
      inbox,
    },
  ),
}

export type InboxEvent = EventOf<typeof INBOX_EVENTS>
export type InboxCreated = EventOf<typeof INBOX_EVENTS, 'InboxCreated'>
export type InboxChanged = EventOf<typeof INBOX_EVENTS, 'InboxChanged'>
export type InboxTokenIssued = EventOf<typeof INBOX_EVENTS, 'InboxTokenIssued'>
export type InboxTokenRevoked = EventOf<typeof INBOX_EVENTS, 'InboxTokenRevoked'>
export type MessageReceived = EventOf<typeof INBOX_EVENTS, 'MessageReceived'>
export type FaultsSet = EventOf<typeof INBOX_EVENTS, 'FaultsSet'>
export type MessageDropped = EventOf<typeof INBOX_EVENTS, 'MessageDropped'>
export type MessageDeleted = EventOf<typeof INBOX_EVENTS, 'MessageDeleted'>
export type InboxExpired = EventOf<typeof INBOX_EVENTS, 'InboxExpired'>
export type InboxDeleted = EventOf<typeof INBOX_EVENTS, 'InboxDeleted'>

type Declared = (typeof INBOX_EVENTS)[InboxEvent['type']]
type SentDeclaration = Exclude<Declared, { sent: null }>

/** The declarations of the events that streams and webhooks send. */
export const SENT_EVENTS = Object.values<Declared>(INBOX_EVENTS).filter(
  (each): each is SentDeclaration => each.sent !== null,
)

/** What streams and webhooks send of the event with that name. */
export function bodyKindOf(name: SentDeclaration['publicName']): BodyKind {
  const declared = SENT_EVENTS.find(({ publicName }) => publicName === name)
  if (declared === undefined) throw new TypeError(`unknown event "${name}"`)
  return declared.sent.body
}

/** When an event happened. */
export function occurredAt(event: InboxEvent): Date {
  const values: Readonly<Record<string, unknown>> = event
  const { time } = INBOX_EVENTS[event.type]
  const value = values[time]
  if (!(value instanceof Date)) throw new TypeError(`${event.type} has no ${time}`)
  return value
}

/**
 * Whether streams and webhooks send an event without mail. An environment lists these in an index; that of its messages
 * has the others.
 */
export function isSentWithoutMail(type: InboxEvent['type']): boolean {
  const { sent } = INBOX_EVENTS[type]
  return sent !== null && sent.body !== 'message'
}

/** Whether an inbox ends with an event. */
export function endsInbox(type: InboxEvent['type']): boolean {
  return INBOX_EVENTS[type].sent?.body === 'ended-inbox'
}

/** The details of an inbox that are sealed with its key, like its mail. */
export interface InboxDetails {
  name: string | null
  /** Hex SHA-256 of the password of a protected inbox. */
  passwordDigest?: string
}
