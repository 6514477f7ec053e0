import Type from 'typebox'
import {
  type EventOf,
  count,
  event,
  id,
  oneOf,
  optional,
  plain,
  sealedText,
  text,
  time,
  type ValuesOf,
  boolean,
  list,
  union,
  type ValueOf,
  constant,
} from '#libs/domain/events/declare.js'

const ofMessage = { inboxId: id('inb'), messageId: id('msg'), occurredAt: time }
const ofInbox = { inboxId: id('inb'), messageId: constant(null), occurredAt: time }

/** What a webhook is notified of: an event of an inbox. Everything else in the notification is read when it is sent. */
export const notification = union('type', {
  'message.received': ofMessage,
  'message.deleted': ofMessage,
  'inbox.expired': ofInbox,
  'inbox.deleted': ofInbox,
  /** A made-up mail, to try an endpoint with. */
  sample: { inboxId: constant(null), messageId: constant(null), occurredAt: time },
})

export type Notification = ValueOf<typeof notification>

export const ABANDONED_FOR = [
  'inbox-ended',
  'message-deleted',
  'webhook-disabled',
  'webhook-removed',
  'replay-cancelled',
] as const

const deliveryIds = {
  webhookId: id('whk'),
  /** The same for the same webhook, notification and replay: what is asked for twice is delivered once. */
  deliveryId: id('dlv'),
}

const attempt = {
  ...deliveryIds,
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
    ...deliveryIds,
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
    ...deliveryIds,
    reason: oneOf(ABANDONED_FOR),
    abandonedAt: time,
  }),
}

export type DeliveryEvent = EventOf<typeof DELIVERY_EVENTS>
export type DeliveryRequested = EventOf<typeof DELIVERY_EVENTS, 'DeliveryRequested'>
export type DeliverySucceeded = EventOf<typeof DELIVERY_EVENTS, 'DeliverySucceeded'>
export type DeliveryFailed = EventOf<typeof DELIVERY_EVENTS, 'DeliveryFailed'>
export type DeliveryAbandoned = EventOf<typeof DELIVERY_EVENTS, 'DeliveryAbandoned'>

const selection = union('kind', {
  /** What happened from one moment up to, not including, another; or of that, what a delivery failed to deliver. */
  range: { from: time, to: time, onlyFailed: boolean },
  deliveries: { deliveryIds: list(id('dlv')) },
  /** The mail that was there when the webhook was registered, from a moment on or all of it. */
  held: { since: optional(time, null) },
})
/** What is delivered again. */
export type ReplaySelection = ValueOf<typeof selection>

const place = union('stage', {
  /** Behind so many of the deliveries it was given. */
  given: { offset: count },
  /** From an offset of the webhook's deliveries on. */
  told: { offset: count },
  /** Among the mail that its inboxes hold, from an offset of one inbox on; null: before the first inbox. */
  held: { inboxId: optional(id('inb'), null), offset: count },
})
/** Where a replay goes on. */
export type ReplayPlace = ValueOf<typeof place>

const replayIds = { webhookId: id('whk'), replayId: id('rpl') }

/** What is on the log beside the deliveries that a replay asks for. */
export const REPLAY_EVENTS = {
  ReplayRequested: event('webhook.replay-requested', {
    ...replayIds,
    accountId: id('acc'),
    environment: text,
    selection,
    requestedAt: time,
  }),

  /** Follows the deliveries of the step that it ends. */
  ReplayAdvanced: event('webhook.replay-advanced', {
    ...replayIds,
    /** Counts steps from 1. One that is not higher than the last changes nothing. */
    step: plain(Type.Integer({ minimum: 1 })),
    /** Null if everything has been asked for. */
    next: optional(place, null),
    advancedAt: time,
  }),

  ReplayCancelled: event('webhook.replay-cancelled', { ...replayIds, cancelledAt: time }),
}

export type ReplayEvent = EventOf<typeof REPLAY_EVENTS>
export type ReplayRequested = EventOf<typeof REPLAY_EVENTS, 'ReplayRequested'>
export type ReplayAdvanced = EventOf<typeof REPLAY_EVENTS, 'ReplayAdvanced'>
export type ReplayCancelled = EventOf<typeof REPLAY_EVENTS, 'ReplayCancelled'>

/** What is on webhook-events. Registrations are not there: they are events of their account. */
export const WEBHOOK_EVENTS = { ...DELIVERY_EVENTS, ...REPLAY_EVENTS }
export type WebhookEvent = EventOf<typeof WEBHOOK_EVENTS>
