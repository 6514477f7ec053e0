import Type from 'typebox'
import {
  MAX_SHARED,
  type ApiRequestServed,
  type MailAccepted,
  type MailRefused,
  type MessageRead,
  type MessageShown,
  type UsageEvent,
} from '#libs/usage/events.js'
import { EventCodec, readTime, type EventForm } from './cloud-event.js'
import { Count, eventForm, IdText, Text, Time } from './event-form.js'

const Milliseconds = Type.Number({ minimum: 0 })
const Labels = Type.Record(Text, Text)

/** What every event about a message begins with. */
const message = { key_id: IdText('key'), inbox_id: IdText('inb'), message_id: IdText('msg'), labels: Labels }

const apiRequestServed = eventForm({
  name: 'usage.api-request-served',
  contentType: 'application/json',
  properties: {
    key_id: IdText('key'),
    method: Text,
    route: Text,
    status: Type.Integer({ minimum: 100, maximum: 599 }),
    refused: Type.Boolean(),
    /** How many requests the event stands for; absent for one. */
    count: Type.Optional(Type.Integer({ minimum: 2, maximum: MAX_SHARED })),
    duration_ms: Milliseconds,
    request_bytes: Count,
    response_bytes: Count,
    inbox_id: Type.Optional(IdText('inb')),
    labels: Labels,
    served_at: Time,
  },
  toData: (event: ApiRequestServed) => ({
    key_id: event.keyId,
    method: event.method,
    route: event.route,
    status: event.status,
    refused: event.isRefused,
    ...(event.count === 1 ? {} : { count: event.count }),
    duration_ms: event.durationMs,
    request_bytes: event.requestBytes,
    response_bytes: event.responseBytes,
    ...(event.inboxId === null ? {} : { inbox_id: event.inboxId }),
    labels: { ...event.labels },
    served_at: event.servedAt.toISOString(),
  }),
  fromData: (data): ApiRequestServed => ({
    type: 'ApiRequestServed',
    keyId: data.key_id,
    method: data.method,
    route: data.route,
    status: data.status,
    isRefused: data.refused,
    count: data.count ?? 1,
    durationMs: data.duration_ms,
    requestBytes: data.request_bytes,
    responseBytes: data.response_bytes,
    inboxId: data.inbox_id ?? null,
    labels: data.labels,
    servedAt: readTime(data.served_at),
  }),
})

const mailAccepted = eventForm({
  name: 'usage.mail-accepted',
  contentType: 'application/json',
  properties: {
    ...message,
    size: Count,
    accept_ms: Milliseconds,
    fingerprint: Type.Optional(Type.String({ pattern: '^[0-9a-f]{16}$' })),
    accepted_at: Time,
  },
  toData: (event: MailAccepted) => ({
    ...writeMessage(event),
    size: event.size,
    accept_ms: event.acceptMs,
    ...(event.fingerprint === null ? {} : { fingerprint: event.fingerprint }),
    accepted_at: event.acceptedAt.toISOString(),
  }),
  fromData: (data): MailAccepted => ({
    type: 'MailAccepted',
    ...readMessage(data),
    size: data.size,
    acceptMs: data.accept_ms,
    fingerprint: data.fingerprint ?? null,
    acceptedAt: readTime(data.accepted_at),
  }),
})

const mailRefused = eventForm({
  name: 'usage.mail-refused',
  contentType: 'application/json',
  properties: {
    key_id: IdText('key'),
    inbox_id: IdText('inb'),
    labels: Labels,
    reason: Text,
    code: Type.Integer({ minimum: 400, maximum: 599 }),
    refused_at: Time,
  },
  toData: (event: MailRefused) => ({
    key_id: event.keyId,
    inbox_id: event.inboxId,
    labels: { ...event.labels },
    reason: event.reason,
    code: event.code,
    refused_at: event.refusedAt.toISOString(),
  }),
  fromData: (data): MailRefused => ({
    type: 'MailRefused',
    keyId: data.key_id,
    inboxId: data.inbox_id,
    labels: data.labels,
    reason: data.reason,
    code: data.code,
    refusedAt: readTime(data.refused_at),
  }),
})

const messageShown = eventForm({
  name: 'usage.message-shown',
  contentType: 'application/json',
  properties: { ...message, received_at: Time, shown_at: Time },
  toData: (event: MessageShown) => ({
    ...writeMessage(event),
    received_at: event.receivedAt.toISOString(),
    shown_at: event.shownAt.toISOString(),
  }),
  fromData: (data): MessageShown => ({
    type: 'MessageShown',
    ...readMessage(data),
    receivedAt: readTime(data.received_at),
    shownAt: readTime(data.shown_at),
  }),
})

const messageRead = eventForm({
  name: 'usage.message-read',
  contentType: 'application/json',
  properties: { ...message, received_at: Time, read_at: Time },
  toData: (event: MessageRead) => ({
    ...writeMessage(event),
    received_at: event.receivedAt.toISOString(),
    read_at: event.readAt.toISOString(),
  }),
  fromData: (data): MessageRead => ({
    type: 'MessageRead',
    ...readMessage(data),
    receivedAt: readTime(data.received_at),
    readAt: readTime(data.read_at),
  }),
})

type MessageFacts = Pick<MailAccepted, 'keyId' | 'inboxId' | 'messageId' | 'labels'>
type MessageData = Type.Static<Type.TObject<typeof message>>

function writeMessage({ keyId, inboxId, messageId, labels }: MessageFacts): MessageData {
  return { key_id: keyId, inbox_id: inboxId, message_id: messageId, labels: { ...labels } }
}

function readMessage({ key_id, inbox_id, message_id, labels }: MessageData): MessageFacts {
  return {
    keyId: key_id,
    inboxId: inbox_id,
    messageId: message_id,
    labels,
  }
}

/** How each event of the topic usage-events is written. */
export const USAGE_EVENT_FORMS = {
  ApiRequestServed: apiRequestServed,
  MailAccepted: mailAccepted,
  MailRefused: mailRefused,
  MessageShown: messageShown,
  MessageRead: messageRead,
} satisfies { [Type in UsageEvent['type']]: EventForm<Extract<UsageEvent, { type: Type }>> }

export const usageEventCodec = new EventCodec<UsageEvent>(USAGE_EVENT_FORMS, (event) => event.keyId)
