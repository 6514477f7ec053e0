import Type from 'typebox'
import {
  event,
  type AnyFields,
  type EventDeclaration,
  type EventOf,
  type ValueOf,
} from '#libs/domain/event-sourcing/declare.js'
import * as field from '#libs/domain/event-sourcing/declare.js'
import { faults } from './fault.js'
import { TOKEN_ACCESS } from './token.js'

/** An address of Mayfly: lower case, without a tag. */
export type Address = string & { readonly __address: true }

/** The key that created the inbox, and the inbox's labels, by which usage is counted. */
const attribution = { keyId: field.named('inbox_key_id', field.id('key')), labels: field.labels }

/** Null in events recorded before usage was counted. */
const inbox = field.optional(field.flat(attribution), null)

/**
 * What streams and webhooks send of an event. `message` has the mail, and is sent only while the inbox is active and has
 * the message. The others have only ids and a time, and webhooks send them even after the inbox has ended.
 */
export type BodyKind = 'message' | 'deleted-message' | 'ended-inbox'

interface Publication<Fields> {
  /** Its name in the API, and in usage figures. */
  publicName: string
  /** The property with the time at which it happened. */
  time: { [Name in keyof Fields]: ValueOf<Fields[Name]> extends Date ? Name : never }[keyof Fields] & string
  /** How streams and webhooks send it; null if they don't. */
  sent: { body: BodyKind; summary: string } | null
  /** Whether it changes the inbox, and so is in its history and in usage figures. */
  isInHistory?: false
}

function inboxEvent<Fields extends AnyFields, const Public extends Publication<Fields>>(
  name: string,
  publication: Public,
  fields: Fields,
  options: Partial<Pick<EventDeclaration, 'contentType' | 'isRemoval'>> = {},
): EventDeclaration<Fields> & Public {
  return { ...event(name, fields, options), ...publication }
}

/** The events of an inbox. Its content and details are sealed with its key (docs/events.md). */
export const INBOX_EVENTS = {
  InboxCreated: inboxEvent(
    'inbox.created',
    { publicName: 'inbox.created', time: 'createdAt', sent: null },
    {
      inboxId: field.id('inb'),
      accountId: field.id('acc'),
      environment: field.text,
      keyId: field.id('key'),
      address: field.plain(Type.Unsafe<Address>(Type.String())),
      duration: field.text,
      labels: field.labels,
      maxMessages: field.count,
      /** Whether reading its mail requires a password. */
      isProtected: field.named('password_protected', field.added(field.boolean, false)),
      createdAt: field.time,
      expiresAt: field.time,
      /** The default faults of its environment; null if there are none. */
      faults: field.optional(faults, null),
      /** `mail` if a mail to its address created it; null if a request did. */
      cause: field.optional(field.oneOf(['mail']), null),
      /** The sealed InboxDetails. */
      sealed: field.sealedText,
    },
  ),

  /** The client changed what it may choose of an inbox. */
  InboxChanged: inboxEvent(
    'inbox.changed',
    { publicName: 'inbox.changed', time: 'changedAt', sent: null },
    {
      inboxId: field.id('inb'),
      /** The key that changed the inbox. */
      keyId: field.id('key'),
      changedAt: field.time,
      /** The number of changes of the inbox, with this one. If two changes have the same, the first one on the log counts. */
      revision: field.count,
      /** Null if they stay. */
      lifetime: field.optional(field.flat({ duration: field.text, expiresAt: field.time }), null),
      /** The newly sealed InboxDetails; null if they stay. */
      sealed: field.optional(field.sealedText, null),
      /** With the labels after the change, all of them. */
      inbox: field.flat(attribution),
    },
  ),

  /** A secret that can access this inbox and nothing else. */
  InboxTokenIssued: inboxEvent(
    'inbox.token-issued',
    { publicName: 'token.issued', time: 'issuedAt', sent: null },
    {
      inboxId: field.id('inb'),
      tokenId: field.id('tok'),
      /** The key that issued it. */
      keyId: field.id('key'),
      /** Of the secret, which is not stored. */
      hash: field.named('secret_hash', field.sha256),
      access: field.oneOf(TOKEN_ACCESS),
      issuedAt: field.time,
      /** The token is invalid from then on, or from the end of the inbox if that comes first. */
      expiresAt: field.time,
      /** As in InboxChanged: tokens that are issued and revoked are changes too. */
      revision: field.count,
      inbox: field.flat(attribution),
    },
  ),

  InboxTokenRevoked: inboxEvent(
    'inbox.token-revoked',
    { publicName: 'token.revoked', time: 'revokedAt', sent: null },
    {
      inboxId: field.id('inb'),
      tokenId: field.id('tok'),
      /** The key that revoked it. */
      keyId: field.id('key'),
      revokedAt: field.time,
      revision: field.count,
      inbox: field.flat(attribution),
    },
    { isRemoval: true },
  ),

  /** Replaces all faults of the inbox. */
  FaultsSet: inboxEvent(
    'inbox.faults-set',
    { publicName: 'faults.set', time: 'setAt', sent: null },
    {
      inboxId: field.id('inb'),
      /** The key that set them. */
      keyId: field.id('key'),
      faults,
      setAt: field.time,
      /** As in InboxChanged: this is a change too. */
      revision: field.count,
      inbox: field.flat(attribution),
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
      inboxId: field.id('inb'),
      messageId: field.id('msg'),
      receivedAt: field.time,
      /** Bytes of the mail's source. */
      size: field.count,
      /** Of the sealed bytes. */
      digest: field.sha256,
      /** The sealed envelope and source. */
      sealed: field.sealedBytes,
      /** The message that this one repeats, because of a fault that duplicates; null otherwise. */
      duplicateOf: field.optional(field.id('msg'), null),
      /**
       * The same for mails of one inbox with the same Message-ID, and for no others: 16 hex digits that reveal nothing
       * without the inbox's key. Null if the mail has no Message-ID, was put in by the API, or was recorded by an older
       * version.
       */
      fingerprint: field.optional(field.plain(Type.String({ pattern: '^[0-9a-f]{16}$' })), null),
      inbox,
    },
    { contentType: 'application/cbor' },
  ),

  /** A mail that was accepted and dropped, because of a fault. Its content is not stored. */
  MessageDropped: inboxEvent(
    'inbox.message-dropped',
    { publicName: 'message.dropped', time: 'droppedAt', sent: null },
    {
      inboxId: field.id('inb'),
      messageId: field.id('msg'),
      droppedAt: field.time,
      /** Bytes of the mail's source. */
      size: field.count,
      /** Of the mail's source. */
      digest: field.sha256,
      inbox: field.flat(attribution),
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
      inboxId: field.id('inb'),
      messageId: field.id('msg'),
      /** The key that deleted the message. */
      keyId: field.id('key'),
      deletedAt: field.time,
      inbox,
    },
    { isRemoval: true },
  ),

  InboxExpired: inboxEvent(
    'inbox.expired',
    {
      publicName: 'inbox.expired',
      time: 'expiredAt',
      sent: { body: 'ended-inbox', summary: 'An inbox expired' },
    },
    { inboxId: field.id('inb'), expiredAt: field.time, inbox },
    { isRemoval: true },
  ),

  InboxDeleted: inboxEvent(
    'inbox.deleted',
    {
      publicName: 'inbox.deleted',
      time: 'deletedAt',
      sent: { body: 'ended-inbox', summary: 'An inbox was deleted' },
    },
    {
      inboxId: field.id('inb'),
      /** The key that deleted the inbox. */
      keyId: field.id('key'),
      deletedAt: field.time,
      inbox,
    },
    { isRemoval: true },
  ),

  /**
   * The key of the ended inbox was deleted, and with it all that it sealed. Changes nothing, and may be recorded twice
   * with the same id (`erasureIdOf`): the first one counts.
   */
  InboxErased: inboxEvent(
    'inbox.erased',
    { publicName: 'inbox.erased', time: 'erasedAt', sent: null, isInHistory: false },
    {
      inboxId: field.id('inb'),
      state: field.oneOf(['deleted', 'expired']),
      endedAt: field.time,
      /** The id of who deleted it; null if it expired. */
      actor: field.optional(field.text, null),
      erasedAt: field.time,
      /** From then on Mayfly's own stores have no copy of the key. */
      copiesGoneBy: field.time,
      inbox,
    },
    { isRemoval: true },
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
export type InboxErased = EventOf<typeof INBOX_EVENTS, 'InboxErased'>

type Declared = (typeof INBOX_EVENTS)[InboxEvent['type']]

/** The declarations of the events that the history of an inbox may have. */
export const HISTORY_EVENTS = Object.values<Declared>(INBOX_EVENTS).filter((each) => !('isInHistory' in each))

export function isInHistory(type: InboxEvent['type']): boolean {
  return HISTORY_EVENTS.includes(INBOX_EVENTS[type])
}

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
  /** Identifies the request that has chosen the address, and its repeats; absent for a generated address. */
  claim?: string
}
