import Type from 'typebox'
import {
  ABANDONED_FOR,
  type AttemptFacts,
  type DeliveryAbandoned,
  type DeliveryEvent,
  type DeliveryFailed,
  type DeliveryRequested,
  type DeliverySucceeded,
} from '#libs/webhook/delivery-events.js'
import { WEBHOOK_EVENT_TYPES } from '#libs/webhook/events.js'
import type { WebhookEvent } from '#libs/webhook/webhook-events.js'
import type { Notification } from '#libs/webhook/notification.js'
import { brand } from '#libs/typeid/typeid.js'
import { EventCodec, readTime, type EventForm } from './cloud-event.js'
import { Count, eventForm, IdText, SealedText, Text, Time } from './event-form.js'
import { REPLAY_EVENT_FORMS } from './replay-event-forms.js'

const Status = Type.Integer({ minimum: 100, maximum: 599 })

/** What every event of a delivery begins with. */
const ids = { webhook_id: IdText('whk'), delivery_id: IdText('dlv') }

/** Absent ids: a sample has no inbox, and the end of an inbox no message. */
const Told = Type.Object({
  type: Type.Enum([...WEBHOOK_EVENT_TYPES, 'sample']),
  inbox_id: Type.Optional(IdText('inb')),
  message_id: Type.Optional(IdText('msg')),
  occurred_at: Time,
})

const attemptProperties = {
  ...ids,
  attempt: Type.Integer({ minimum: 1 }),
  attempted_at: Time,
  latency_ms: Count,
  answer: Type.Optional(SealedText),
}

const deliveryRequested = eventForm({
  name: 'webhook.delivery-requested',
  contentType: 'application/json',
  properties: {
    ...ids,
    account_id: IdText('acc'),
    environment: Text,
    notification: Told,
    replay_id: Type.Optional(IdText('rpl')),
    requested_at: Time,
  },
  toData: (event: DeliveryRequested) => ({
    ...idsOf(event),
    account_id: event.accountId,
    environment: event.environment,
    notification: writeNotification(event.notification),
    ...(event.replayId === null ? {} : { replay_id: event.replayId }),
    requested_at: event.requestedAt.toISOString(),
  }),
  fromData: (data): DeliveryRequested => ({
    type: 'DeliveryRequested',
    ...readIds(data),
    accountId: data.account_id,
    environment: data.environment,
    notification: readNotification(data.notification),
    replayId: data.replay_id ?? null,
    requestedAt: readTime(data.requested_at),
  }),
})

const deliverySucceeded = eventForm({
  name: 'webhook.delivery-succeeded',
  contentType: 'application/json',
  properties: { ...attemptProperties, status: Status },
  toData: (event: DeliverySucceeded) => ({ ...writeAttempt(event), status: event.status }),
  fromData: (data): DeliverySucceeded => ({
    type: 'DeliverySucceeded',
    ...readAttempt(data),
    status: data.status,
  }),
})

const deliveryFailed = eventForm({
  name: 'webhook.delivery-failed',
  contentType: 'application/json',
  properties: {
    ...attemptProperties,
    status: Type.Optional(Status),
    error: Text,
    next_attempt_at: Type.Optional(Time),
  },
  toData: (event: DeliveryFailed) => ({
    ...writeAttempt(event),
    ...(event.status === null ? {} : { status: event.status }),
    error: event.error,
    ...(event.nextAttemptAt === null ? {} : { next_attempt_at: event.nextAttemptAt.toISOString() }),
  }),
  fromData: (data): DeliveryFailed => ({
    type: 'DeliveryFailed',
    ...readAttempt(data),
    status: data.status ?? null,
    error: data.error,
    nextAttemptAt: data.next_attempt_at === undefined ? null : readTime(data.next_attempt_at),
  }),
})

const deliveryAbandoned = eventForm({
  name: 'webhook.delivery-abandoned',
  contentType: 'application/json',
  properties: { ...ids, reason: Type.Enum([...ABANDONED_FOR]), abandoned_at: Time },
  toData: (event: DeliveryAbandoned) => ({
    ...idsOf(event),
    reason: event.reason,
    abandoned_at: event.abandonedAt.toISOString(),
  }),
  fromData: (data): DeliveryAbandoned => ({
    type: 'DeliveryAbandoned',
    ...readIds(data),
    reason: data.reason,
    abandonedAt: readTime(data.abandoned_at),
  }),
})

type Ids = Pick<DeliveryEvent, 'webhookId' | 'deliveryId'>
type IdsData = Type.Static<Type.TObject<typeof ids>>

function idsOf({ webhookId, deliveryId }: Ids): IdsData {
  return { webhook_id: webhookId, delivery_id: deliveryId }
}

function readIds({ webhook_id, delivery_id }: IdsData): Ids {
  return { webhookId: webhook_id, deliveryId: delivery_id }
}

type AttemptData = Type.Static<Type.TObject<typeof attemptProperties>>

function writeAttempt(event: AttemptFacts): AttemptData {
  const { attempt, attemptedAt, latencyMs, answer } = event
  return {
    ...idsOf(event),
    attempt,
    attempted_at: attemptedAt.toISOString(),
    latency_ms: latencyMs,
    ...(answer === null ? {} : { answer: Buffer.from(answer).toString('base64') }),
  }
}

function readAttempt(data: AttemptData): AttemptFacts {
  return {
    ...readIds(data),
    attempt: data.attempt,
    attemptedAt: readTime(data.attempted_at),
    latencyMs: data.latency_ms,
    answer: data.answer === undefined ? null : Buffer.from(data.answer, 'base64'),
  }
}

function writeNotification({ type, inboxId, messageId, occurredAt }: Notification): Type.Static<typeof Told> {
  return {
    type,
    ...(inboxId === null ? {} : { inbox_id: inboxId }),
    ...(messageId === null ? {} : { message_id: messageId }),
    occurred_at: occurredAt.toISOString(),
  }
}

/** Throws where a notification of that type lacks an id that it needs. */
function readNotification(data: Type.Static<typeof Told>): Notification {
  const { type } = data
  const occurredAt = readTime(data.occurred_at)
  if (type === 'sample') return { type, inboxId: null, messageId: null, occurredAt }
  const inboxId = brand('inb', data.inbox_id ?? '')
  if (type === 'inbox.expired' || type === 'inbox.deleted')
    return { type, inboxId, messageId: null, occurredAt }
  return { type, inboxId, messageId: brand('msg', data.message_id ?? ''), occurredAt }
}

/** How the events of deliveries are written. */
const DELIVERY_EVENT_FORMS = {
  DeliveryRequested: deliveryRequested,
  DeliverySucceeded: deliverySucceeded,
  DeliveryFailed: deliveryFailed,
  DeliveryAbandoned: deliveryAbandoned,
} satisfies { [Type in DeliveryEvent['type']]: EventForm<Extract<DeliveryEvent, { type: Type }>> }

/** How each event of the topic webhook-events is written. */
export const WEBHOOK_EVENT_FORMS = { ...DELIVERY_EVENT_FORMS, ...REPLAY_EVENT_FORMS }

export const webhookEventCodec = new EventCodec<WebhookEvent>(WEBHOOK_EVENT_FORMS, (event) => event.webhookId)
