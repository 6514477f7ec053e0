import Type from 'typebox'
import {
  count,
  event,
  id,
  oneOf,
  optional,
  plain,
  sealedText,
  text,
  time,
  type EventOf,
  type ValuesOf,
} from '#libs/domain/events/declare.js'
import { notification } from './notification.js'

export const ABANDONED_FOR = [
  'inbox-ended',
  'message-deleted',
  'webhook-disabled',
  'webhook-removed',
  'replay-cancelled',
] as const

const ids = {
  webhookId: id('whk'),
  /** The same for the same webhook, notification and replay: what is asked for twice is delivered once. */
  deliveryId: id('dlv'),
}

const attempt = {
  ...ids,
  /** Counts attempts from 1. One that is not higher than the last changes nothing. */
  attempt: plain(Type.Integer({ minimum: 1 })),
  attemptedAt: time,
  latencyMs: count,
  /** The beginning of the answer, sealed with the key of the inbox, whose mail it may repeat; null for none. */
  answer: optional(sealedText, null),
}
export type AttemptFacts = ValuesOf<typeof attempt>

const status = plain(Type.Integer({ minimum: 100, maximum: 599 }))

export const DELIVERY_EVENTS = {
  DeliveryRequested: event('webhook.delivery-requested', {
    ...ids,
    accountId: id('acc'),
    environment: text,
    notification,
    /** Null for a notification sent as its event happens. */
    replayId: optional(id('rpl'), null),
    requestedAt: time,
  }),

  DeliverySucceeded: event('webhook.delivery-succeeded', { ...attempt, status }),

  DeliveryFailed: event('webhook.delivery-failed', {
    ...attempt,
    /** Null if no answer came. */
    status: optional(status, null),
    /** In a few words. */
    error: text,
    /** Null if there are no more attempts. */
    nextAttemptAt: optional(time, null),
  }),

  /** Nothing is left to be sent, or nobody to send it to. */
  DeliveryAbandoned: event('webhook.delivery-abandoned', {
    ...ids,
    reason: oneOf(ABANDONED_FOR),
    abandonedAt: time,
  }),
}

export type DeliveryEvent = EventOf<typeof DELIVERY_EVENTS>
export type DeliveryRequested = EventOf<typeof DELIVERY_EVENTS, 'DeliveryRequested'>
export type DeliverySucceeded = EventOf<typeof DELIVERY_EVENTS, 'DeliverySucceeded'>
export type DeliveryFailed = EventOf<typeof DELIVERY_EVENTS, 'DeliveryFailed'>
export type DeliveryAbandoned = EventOf<typeof DELIVERY_EVENTS, 'DeliveryAbandoned'>
