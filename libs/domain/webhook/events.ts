import Type from 'typebox'
import {
  boolean,
  codec,
  constant,
  count,
  event,
  id,
  list,
  object,
  oneOf,
  optional,
  plain,
  parseTime,
  sealedText,
  text,
  time,
  union,
  type EventOf,
  type ValueOf,
  type ValuesOf,
} from '#libs/domain/event-sourcing/declare.js'
import { SENT_EVENTS } from '#libs/domain/inbox/events.js'

/*
 * The events of webhooks: their registration, on account-events; their deliveries and replays, on webhook-events.
 */

/** The types of events that a webhook may subscribe to, as its receiver sees them. */
export const WEBHOOK_EVENT_TYPES = SENT_EVENTS.map(({ publicName }) => publicName)

export type WebhookEventType = (typeof WEBHOOK_EVENT_TYPES)[number]

/** Sealed with the master key that `masterKeyId` names. */
const sealed = object({ masterKeyId: text, sealed: sealedText })

/** The secret that a webhook signs with, as it may be stored. */
export type SealedSecret = ValueOf<typeof sealed>

/**
 * The URL of a webhook as it may be stored: sealed like its secret, since a URL often contains a secret. Plain text in
 * events and views written before URLs were sealed.
 */
export type StoredUrl = SealedSecret | string

const url = codec(
  Type.Union([sealed.schema, Type.String()]),
  (stored: StoredUrl) => (typeof stored === 'string' ? stored : sealed.encode(stored)),
  (data): StoredUrl => (typeof data === 'string' ? data : sealed.decode(data)),
)

/** The earliest events that a webhook is notified of: those after its registration, all, or those since a time. */
export type StartFrom = 'now' | 'beginning' | Date

const startFrom = codec(
  Type.Union([Type.Enum(['now', 'beginning']), time.schema]),
  (start: StartFrom) => (start instanceof Date ? start.toISOString() : start),
  (data): StartFrom => (data === 'now' || data === 'beginning' ? data : parseTime(String(data))),
)

/** The end of a partition of inbox-events at some time. */
const partitionEnd = object({ partition: count, offset: count })
export type PartitionEnd = ValueOf<typeof partitionEnd>

/** Why a webhook is disabled: its owner disabled it, its endpoint answered 410, or its deliveries failed for days. */
export type DisabledReason = 'by-request' | 'gone' | 'failing'

const webhookIds = { accountId: id('acc'), webhookId: id('whk') }
const events = list(oneOf(WEBHOOK_EVENT_TYPES))

/** Registration events are on account-events, among the other events of their account. */
export const REGISTRATION_EVENTS = {
  WebhookRegistered: event('webhook.registered', {
    ...webhookIds,
    environment: text,
    /** Null for all inboxes of the environment. */
    inboxId: optional(id('inb'), null),
    url,
    events,
    secret: sealed,
    startFrom,
    /** The end of the inbox's partition, or of every partition, read before this event was appended. */
    positions: list(partitionEnd),
    registeredAt: time,
  }),

  /** Null means unchanged. */
  WebhookChanged: event('webhook.changed', {
    ...webhookIds,
    url: optional(url, null),
    events: optional(events, null),
    state: optional(oneOf(['active', 'disabled']), null),
    changedAt: time,
  }),

  WebhookSecretRotated: event('webhook.secret-rotated', {
    ...webhookIds,
    /** Counts the webhook's rotations from 1. An event whose number is not higher than the last one changes nothing. */
    rotation: count,
    secret: sealed,
    /** Until then the previous secret signs too. */
    graceEndsAt: time,
    rotatedAt: time,
  }),

  /** Mayfly disabled the webhook, because of how its endpoint answered. */
  WebhookDisabled: event('webhook.disabled', {
    ...webhookIds,
    reason: oneOf(['gone', 'failing']),
    disabledAt: time,
  }),

  WebhookRemoved: event('webhook.removed', { ...webhookIds, removedAt: time }),
}

export type RegistrationEvent = EventOf<typeof REGISTRATION_EVENTS>
export type WebhookRegistered = EventOf<typeof REGISTRATION_EVENTS, 'WebhookRegistered'>
export type WebhookChanged = EventOf<typeof REGISTRATION_EVENTS, 'WebhookChanged'>
export type WebhookSecretRotated = EventOf<typeof REGISTRATION_EVENTS, 'WebhookSecretRotated'>
export type WebhookDisabled = EventOf<typeof REGISTRATION_EVENTS, 'WebhookDisabled'>
export type WebhookRemoved = EventOf<typeof REGISTRATION_EVENTS, 'WebhookRemoved'>

const ofMessage = { inboxId: id('inb'), messageId: id('msg'), occurredAt: time }
const ofInbox = { inboxId: id('inb'), messageId: constant(null), occurredAt: time }
const ofEvents = SENT_EVENTS.map(
  ({ publicName, fields }) => [publicName, 'messageId' in fields ? ofMessage : ofInbox] as const,
)

/** The event of an inbox that a delivery is about. The rest of the notification's body is read when it is sent. */
export const notification = union('type', {
  ...(Object.fromEntries(ofEvents) as Record<WebhookEventType, typeof ofMessage | typeof ofInbox>),
  /** A made-up mail, to test an endpoint with. */
  sample: { inboxId: constant(null), messageId: constant(null), occurredAt: time },
})

export type Notification = ValueOf<typeof notification>
export type EventNotification = Exclude<Notification, { type: 'sample' }>

export const ABANDONED_FOR = [
  'inbox-ended',
  'message-deleted',
  'webhook-disabled',
  'webhook-removed',
  'replay-cancelled',
] as const

const deliveryIds = {
  webhookId: id('whk'),
  /** The same for the same webhook, notification and replay, so that a delivery requested twice is made once. */
  deliveryId: id('dlv'),
}

const attempt = {
  ...deliveryIds,
  /** Counts attempts from 1. An event whose number is not higher than the last one changes nothing. */
  attempt: plain(Type.Integer({ minimum: 1 })),
  attemptedAt: time,
  latencyMs: count,
  /** The beginning of the response, sealed with the inbox's key, since it may repeat mail; null if there was none. */
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
    /** Null if no replay requested the delivery. */
    replayId: optional(id('rpl'), null),
    requestedAt: time,
  }),

  DeliverySucceeded: event('webhook.delivery-succeeded', { ...attempt, status }),

  DeliveryFailed: event('webhook.delivery-failed', {
    ...attempt,
    /** Null if there was no response. */
    status: optional(status, null),
    /** A short description. */
    error: text,
    /** Null if this was the last attempt. */
    nextAttemptAt: optional(time, null),
  }),

  /** There is nothing left to send, or no endpoint to send it to. */
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

const selection = union(
  'kind',
  {
    /** Events that occurred from one time up to, not including, another; all, or only those with a failed delivery. */
    range: { from: time, to: time, onlyFailed: boolean },
    deliveries: { deliveryIds: list(id('dlv')) },
    /** Mail that existed when the webhook was registered; null for all of it, else only mail received since then. */
    'existing-mail': { since: optional(time, null) },
  },
  { 'existing-mail': 'held' },
)
/** The deliveries or mail of a replay. */
export type ReplaySelection = ValueOf<typeof selection>

const position = union(
  'stage',
  {
    /** An index into the selected deliveries. */
    'selected-deliveries': { offset: count },
    /** An offset in the log of the webhook's deliveries. */
    'past-deliveries': { offset: count },
    /** An offset of an inbox, among the mail that the webhook's inboxes hold; null before the first inbox. */
    'existing-mail': { inboxId: optional(id('inb'), null), offset: count },
  },
  { 'selected-deliveries': 'given', 'past-deliveries': 'told', 'existing-mail': 'held' },
)
/** The position at which a replay continues. */
export type ReplayPosition = ValueOf<typeof position>

const replayIds = { webhookId: id('whk'), replayId: id('rpl') }

/** The progress of a replay. The deliveries that it requests are events of their own. */
export const REPLAY_EVENTS = {
  ReplayRequested: event('webhook.replay-requested', {
    ...replayIds,
    accountId: id('acc'),
    environment: text,
    selection,
    requestedAt: time,
  }),

  /** Appended after the deliveries of the step that it ends. */
  ReplayAdvanced: event('webhook.replay-advanced', {
    ...replayIds,
    /** Counts steps from 1. An event whose number is not higher than the last one changes nothing. */
    step: plain(Type.Integer({ minimum: 1 })),
    /** Null if all deliveries have been requested. */
    next: optional(position, null),
    advancedAt: time,
  }),

  ReplayCancelled: event('webhook.replay-cancelled', { ...replayIds, cancelledAt: time }),
}

export type ReplayEvent = EventOf<typeof REPLAY_EVENTS>
export type ReplayRequested = EventOf<typeof REPLAY_EVENTS, 'ReplayRequested'>
export type ReplayAdvanced = EventOf<typeof REPLAY_EVENTS, 'ReplayAdvanced'>
export type ReplayCancelled = EventOf<typeof REPLAY_EVENTS, 'ReplayCancelled'>

/** All events of the topic webhook-events. */
export const WEBHOOK_EVENTS = { ...DELIVERY_EVENTS, ...REPLAY_EVENTS }
export type WebhookEvent = EventOf<typeof WEBHOOK_EVENTS>
