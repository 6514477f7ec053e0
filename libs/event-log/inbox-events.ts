import Type from 'typebox'
import type { Address } from '#libs/inbox/address.js'
import type {
  InboxAttribution,
  InboxCreated,
  InboxDeleted,
  InboxEvent,
  InboxExpired,
  MessageDeleted,
  MessageReceived,
} from '#libs/inbox/events.js'
import type { KeyId } from '#libs/typeid/typeid.js'
import { EventCodec, readTime, type EventForm } from './cloud-event.js'
import { Count, eventForm, IdText, SealedBytes, SealedText, Sha256, Text, Time } from './event-form.js'

/** An InboxAttribution. Records from before usage was counted lack both properties. */
const INBOX_ATTRIBUTION = {
  inbox_key_id: Type.Optional(IdText('key')),
  labels: Type.Optional(Type.Record(Text, Text)),
}

interface InboxAttributionData {
  inbox_key_id?: KeyId
  labels?: Record<string, string>
}

function attributionData(inbox: InboxAttribution | null): InboxAttributionData {
  return inbox === null ? {} : { inbox_key_id: inbox.keyId, labels: { ...inbox.labels } }
}

function attribution({ inbox_key_id: keyId, labels = {} }: InboxAttributionData): InboxAttribution | null {
  return keyId === undefined ? null : { keyId, labels }
}

const inboxCreated = eventForm({
  name: 'inbox.created',
  contentType: 'application/json',
  properties: {
    inbox_id: IdText('inb'),
    account_id: IdText('acc'),
    environment: Text,
    key_id: IdText('key'),
    address: Text,
    duration: Text,
    labels: Type.Record(Text, Text),
    max_messages: Count,
    // Records from before there were passwords lack it.
    password_protected: Type.Optional(Type.Boolean()),
    created_at: Time,
    expires_at: Time,
    sealed: SealedText,
  },
  toData: (event: InboxCreated) => ({
    inbox_id: event.inboxId,
    account_id: event.accountId,
    environment: event.environment,
    key_id: event.keyId,
    address: event.address,
    duration: event.duration,
    labels: { ...event.labels },
    max_messages: event.maxMessages,
    password_protected: event.isProtected,
    created_at: event.createdAt.toISOString(),
    expires_at: event.expiresAt.toISOString(),
    sealed: Buffer.from(event.sealed).toString('base64'),
  }),
  fromData: (data): InboxCreated => ({
    type: 'InboxCreated',
    inboxId: data.inbox_id,
    accountId: data.account_id,
    environment: data.environment,
    keyId: data.key_id,
    address: data.address as Address,
    duration: data.duration,
    labels: data.labels,
    maxMessages: data.max_messages,
    isProtected: data.password_protected ?? false,
    createdAt: readTime(data.created_at),
    expiresAt: readTime(data.expires_at),
    sealed: Buffer.from(data.sealed, 'base64'),
  }),
})

const messageReceived = eventForm({
  name: 'inbox.message-received',
  contentType: 'application/cbor',
  properties: {
    inbox_id: IdText('inb'),
    message_id: IdText('msg'),
    received_at: Time,
    size: Count,
    digest: Sha256,
    sealed: SealedBytes,
    ...INBOX_ATTRIBUTION,
  },
  toData: (event: MessageReceived) => ({
    inbox_id: event.inboxId,
    message_id: event.messageId,
    received_at: event.receivedAt.toISOString(),
    size: event.size,
    digest: event.digest,
    sealed: event.sealed,
    ...attributionData(event.inbox),
  }),
  fromData: (data): MessageReceived => ({
    type: 'MessageReceived',
    inboxId: data.inbox_id,
    messageId: data.message_id,
    receivedAt: readTime(data.received_at),
    size: data.size,
    digest: data.digest,
    sealed: data.sealed,
    inbox: attribution(data),
  }),
})

const messageDeleted = eventForm({
  name: 'inbox.message-deleted',
  contentType: 'application/json',
  properties: {
    inbox_id: IdText('inb'),
    message_id: IdText('msg'),
    key_id: IdText('key'),
    deleted_at: Time,
    ...INBOX_ATTRIBUTION,
  },
  toData: (event: MessageDeleted) => ({
    inbox_id: event.inboxId,
    message_id: event.messageId,
    key_id: event.keyId,
    deleted_at: event.deletedAt.toISOString(),
    ...attributionData(event.inbox),
  }),
  fromData: (data): MessageDeleted => ({
    type: 'MessageDeleted',
    inboxId: data.inbox_id,
    messageId: data.message_id,
    keyId: data.key_id,
    deletedAt: readTime(data.deleted_at),
    inbox: attribution(data),
  }),
})

const inboxExpired = eventForm({
  name: 'inbox.expired',
  contentType: 'application/json',
  properties: { inbox_id: IdText('inb'), expired_at: Time, ...INBOX_ATTRIBUTION },
  toData: (event: InboxExpired) => ({
    inbox_id: event.inboxId,
    expired_at: event.expiredAt.toISOString(),
    ...attributionData(event.inbox),
  }),
  fromData: (data): InboxExpired => ({
    type: 'InboxExpired',
    inboxId: data.inbox_id,
    expiredAt: readTime(data.expired_at),
    inbox: attribution(data),
  }),
})

const inboxDeleted = eventForm({
  name: 'inbox.deleted',
  contentType: 'application/json',
  properties: { inbox_id: IdText('inb'), key_id: IdText('key'), deleted_at: Time, ...INBOX_ATTRIBUTION },
  toData: (event: InboxDeleted) => ({
    inbox_id: event.inboxId,
    key_id: event.keyId,
    deleted_at: event.deletedAt.toISOString(),
    ...attributionData(event.inbox),
  }),
  fromData: (data): InboxDeleted => ({
    type: 'InboxDeleted',
    inboxId: data.inbox_id,
    keyId: data.key_id,
    deletedAt: readTime(data.deleted_at),
    inbox: attribution(data),
  }),
})

/** How each event of the topic inbox-events is written. */
export const INBOX_EVENT_FORMS = {
  InboxCreated: inboxCreated,
  MessageReceived: messageReceived,
  MessageDeleted: messageDeleted,
  InboxExpired: inboxExpired,
  InboxDeleted: inboxDeleted,
} satisfies { [Type in InboxEvent['type']]: EventForm<Extract<InboxEvent, { type: Type }>> }

export const inboxEventCodec = new EventCodec<InboxEvent>(INBOX_EVENT_FORMS, (event) => event.inboxId)
