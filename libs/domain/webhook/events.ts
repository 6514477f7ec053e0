import Type from 'typebox'
import { event, type EventOf, type ValueOf, type ValuesOf } from '#libs/domain/event-sourcing/declare.js'
import * as field from '#libs/domain/event-sourcing/declare.js'
import { personalText, type PersonalText } from '#libs/domain/account/personal-data.js'
import { QUOTAS, quotaScope } from '#libs/domain/account/quota.js'
import { SENT_EVENTS } from '#libs/domain/inbox/events.js'

/*
 * The events of webhooks: their registration, on account-events; their deliveries and replays, on webhook-events.
 */

/** What only webhooks of a whole environment are notified of. */
export const ENVIRONMENT_NOTIFICATIONS = [
  { publicName: 'domain.verified', sent: { body: 'domain', summary: 'A domain was verified' } },
  { publicName: 'domain.lapsed', sent: { body: 'domain', summary: 'A domain has lapsed' } },
  { publicName: 'key.expiring', sent: { body: 'key', summary: 'A key is about to expire' } },
  { publicName: 'quota.reached', sent: { body: 'quota', summary: 'A quota is used up, or nearly' } },
] as const

/** What webhooks send: events of inboxes, those of an environment's domains and keys, and of the account's quotas. */
export const NOTIFICATIONS = [...SENT_EVENTS, ...ENVIRONMENT_NOTIFICATIONS]

/** The types of events that a webhook may subscribe to, as its receiver sees them. */
export const WEBHOOK_EVENT_TYPES = NOTIFICATIONS.map(({ publicName }) => publicName)

export type WebhookEventType = (typeof WEBHOOK_EVENT_TYPES)[number]
type InboxEventType = (typeof SENT_EVENTS)[number]['publicName']

/** Sealed with the master key that `masterKeyId` names. */
const sealed = field.object({ masterKeyId: field.text, sealed: field.sealedText })

/** The secret that a webhook signs with, as it may be stored. */
export type SealedSecret = ValueOf<typeof sealed>

/**
 * The URL of a webhook as it may be stored: sealed with the key of its account, since a URL often contains a secret or a
 * name. Sealed with a master key, or plain text, in earlier events.
 */
export type StoredUrl = PersonalText | SealedSecret

const url = field.codec(
  Type.Union([sealed.schema, personalText.schema]),
  (stored: StoredUrl) => (isOfMasterKey(stored) ? sealed.encode(stored) : personalText.encode(stored)),
  (data): StoredUrl =>
    typeof data === 'object' && data !== null && 'master_key_id' in data
      ? sealed.decode(data)
      : personalText.decode(data),
)

/** Whether a URL is sealed with a master key. */
export function isOfMasterKey(url: StoredUrl): url is SealedSecret {
  return typeof url === 'object' && 'masterKeyId' in url
}

/** The earliest events that a webhook is notified of: those after its registration, all, or those since a time. */
export type StartFrom = 'now' | 'beginning' | Date

const startFrom = field.codec(
  Type.Union([Type.Enum(['now', 'beginning']), field.time.schema]),
  (start: StartFrom) => (start instanceof Date ? start.toISOString() : start),
  (data): StartFrom => (data === 'now' || data === 'beginning' ? data : field.parseTime(String(data))),
)

/** The end of a partition of inbox-events at some time. */
const partitionEnd = field.object({ partition: field.count, offset: field.count })
export type PartitionEnd = ValueOf<typeof partitionEnd>

/** Why a webhook is disabled: its owner disabled it, its endpoint answered 410, or its deliveries failed for days. */
export type DisabledReason = 'by-request' | 'gone' | 'failing'

const webhookIds = { accountId: field.id('acc'), webhookId: field.id('whk') }
const events = field.list(field.oneOf(WEBHOOK_EVENT_TYPES))

/** Registration events are on account-events, among the other events of their account. */
export const REGISTRATION_EVENTS = {
  WebhookRegistered: event('webhook.registered', {
    ...webhookIds,
    environment: field.text,
    /** Null for all inboxes of the environment. */
    inboxId: field.optional(field.id('inb'), null),
    url,
    events,
    secret: sealed,
    startFrom,
    /** The end of the inbox's partition, or of every partition, read before this event was appended. */
    positions: field.list(partitionEnd),
    registeredAt: field.time,
  }),

  /** Null means unchanged. */
  WebhookChanged: event('webhook.changed', {
    ...webhookIds,
    url: field.optional(url, null),
    events: field.optional(events, null),
    state: field.optional(field.oneOf(['active', 'disabled']), null),
    changedAt: field.time,
  }),

  WebhookSecretRotated: event('webhook.secret-rotated', {
    ...webhookIds,
    /** Counts the webhook's rotations from 1. An event whose number is not higher than the last one changes nothing. */
    rotation: field.count,
    secret: sealed,
    /** Until then the previous secret signs too. */
    graceEndsAt: field.time,
    rotatedAt: field.time,
  }),

  /** Mayfly disabled the webhook, because of how its endpoint answered. */
  WebhookDisabled: event(
    'webhook.disabled',
    { ...webhookIds, reason: field.oneOf(['gone', 'failing']), disabledAt: field.time },
    { isRemoval: true },
  ),

  WebhookRemoved: event('webhook.removed', { ...webhookIds, removedAt: field.time }, { isRemoval: true }),
}

export type RegistrationEvent = EventOf<typeof REGISTRATION_EVENTS>
export type WebhookRegistered = EventOf<typeof REGISTRATION_EVENTS, 'WebhookRegistered'>
export type WebhookChanged = EventOf<typeof REGISTRATION_EVENTS, 'WebhookChanged'>
export type WebhookSecretRotated = EventOf<typeof REGISTRATION_EVENTS, 'WebhookSecretRotated'>
export type WebhookDisabled = EventOf<typeof REGISTRATION_EVENTS, 'WebhookDisabled'>
export type WebhookRemoved = EventOf<typeof REGISTRATION_EVENTS, 'WebhookRemoved'>

const ofMessage = { inboxId: field.id('inb'), messageId: field.id('msg'), occurredAt: field.time }
const ofInbox = { inboxId: field.id('inb'), messageId: field.constant(null), occurredAt: field.time }
const ofDomain = {
  inboxId: field.constant(null),
  messageId: field.constant(null),
  domainId: field.id('dom'),
  /** The name of the domain, as A-labels. */
  name: field.text,
  occurredAt: field.time,
}
const ofKey = {
  inboxId: field.constant(null),
  messageId: field.constant(null),
  keyId: field.id('key'),
  name: field.text,
  expiresAt: field.time,
  daysLeft: field.count,
  occurredAt: field.time,
}
const ofQuota = {
  inboxId: field.constant(null),
  messageId: field.constant(null),
  quota: field.oneOf(QUOTAS),
  scope: quotaScope,
  limit: field.count,
  used: field.count,
  percent: field.count,
  resetsAt: field.optional(field.time, null),
  occurredAt: field.time,
}
const ofEvents = SENT_EVENTS.map(
  ({ publicName, fields }) => [publicName, 'messageId' in fields ? ofMessage : ofInbox] as const,
)

/** What a delivery is about. The rest of the notification's body is read when it is sent. */
export const notification = field.union('type', {
  ...(Object.fromEntries(ofEvents) as Record<InboxEventType, typeof ofMessage | typeof ofInbox>),
  'domain.verified': ofDomain,
  'domain.lapsed': ofDomain,
  'key.expiring': ofKey,
  'quota.reached': ofQuota,
  /** A made-up mail, to test an endpoint with. */
  sample: { inboxId: field.constant(null), messageId: field.constant(null), occurredAt: field.time },
})

export type Notification = ValueOf<typeof notification>
export type DomainNotification = Extract<Notification, { type: 'domain.verified' | 'domain.lapsed' }>
export type KeyNotification = Extract<Notification, { type: 'key.expiring' }>
export type QuotaNotification = Extract<Notification, { type: 'quota.reached' }>
/** Of an event of an inbox. */
export type EventNotification = Exclude<
  Notification,
  DomainNotification | KeyNotification | QuotaNotification | { type: 'sample' }
>

export const ABANDONED_FOR = [
  'inbox-ended',
  'message-deleted',
  'webhook-disabled',
  'webhook-removed',
  'replay-cancelled',
] as const

const deliveryIds = {
  webhookId: field.id('whk'),
  /** The same for the same webhook, notification and replay, so that a delivery requested twice is made once. */
  deliveryId: field.id('dlv'),
}

const attempt = {
  ...deliveryIds,
  /** Counts attempts from 1. An event whose number is not higher than the last one changes nothing. */
  attempt: field.plain(Type.Integer({ minimum: 1 })),
  attemptedAt: field.time,
  latencyMs: field.count,
  /** The beginning of the response, sealed with the inbox's key, since it may repeat mail; null if there was none. */
  answer: field.optional(field.sealedText, null),
}
export type AttemptFacts = ValuesOf<typeof attempt>

const status = field.plain(Type.Integer({ minimum: 100, maximum: 599 }))

export const DELIVERY_EVENTS = {
  DeliveryRequested: event('webhook.delivery-requested', {
    ...deliveryIds,
    accountId: field.id('acc'),
    environment: field.text,
    notification,
    /** Null if no replay requested the delivery. */
    replayId: field.optional(field.id('rpl'), null),
    requestedAt: field.time,
  }),

  DeliverySucceeded: event('webhook.delivery-succeeded', { ...attempt, status }),

  DeliveryFailed: event('webhook.delivery-failed', {
    ...attempt,
    /** Null if there was no response. */
    status: field.optional(status, null),
    /** A short description. */
    error: field.text,
    /** Null if this was the last attempt. */
    nextAttemptAt: field.optional(field.time, null),
  }),

  /** There is nothing left to send, or no endpoint to send it to. */
  DeliveryAbandoned: event(
    'webhook.delivery-abandoned',
    { ...deliveryIds, reason: field.oneOf(ABANDONED_FOR), abandonedAt: field.time },
    { isRemoval: true },
  ),
}

export type DeliveryEvent = EventOf<typeof DELIVERY_EVENTS>
export type DeliveryRequested = EventOf<typeof DELIVERY_EVENTS, 'DeliveryRequested'>
export type DeliverySucceeded = EventOf<typeof DELIVERY_EVENTS, 'DeliverySucceeded'>
export type DeliveryFailed = EventOf<typeof DELIVERY_EVENTS, 'DeliveryFailed'>
export type DeliveryAbandoned = EventOf<typeof DELIVERY_EVENTS, 'DeliveryAbandoned'>

const selection = field.union(
  'kind',
  {
    /** Events that occurred from one time up to, not including, another; all, or only those with a failed delivery. */
    range: { from: field.time, to: field.time, onlyFailed: field.boolean },
    deliveries: { deliveryIds: field.list(field.id('dlv')) },
    /** Mail that existed when the webhook was registered; null for all of it, else only mail received since then. */
    'existing-mail': { since: field.optional(field.time, null) },
  },
  { 'existing-mail': 'held' },
)
/** The deliveries or mail of a replay. */
export type ReplaySelection = ValueOf<typeof selection>

const position = field.union(
  'stage',
  {
    /** An index into the selected deliveries. */
    'selected-deliveries': { offset: field.count },
    /** An offset in the log of the webhook's deliveries. */
    'past-deliveries': { offset: field.count },
    /** An offset of an inbox, among the mail that the webhook's inboxes hold; null before the first inbox. */
    'existing-mail': { inboxId: field.optional(field.id('inb'), null), offset: field.count },
  },
  { 'selected-deliveries': 'given', 'past-deliveries': 'told', 'existing-mail': 'held' },
)
/** The position at which a replay continues. */
export type ReplayPosition = ValueOf<typeof position>

const replayIds = { webhookId: field.id('whk'), replayId: field.id('rpl') }

/** The progress of a replay. The deliveries that it requests are events of their own. */
export const REPLAY_EVENTS = {
  ReplayRequested: event('webhook.replay-requested', {
    ...replayIds,
    accountId: field.id('acc'),
    environment: field.text,
    selection,
    requestedAt: field.time,
  }),

  /** Appended after the deliveries of the step that it ends. */
  ReplayAdvanced: event('webhook.replay-advanced', {
    ...replayIds,
    /** Counts steps from 1. An event whose number is not higher than the last one changes nothing. */
    step: field.plain(Type.Integer({ minimum: 1 })),
    /** Null if all deliveries have been requested. */
    next: field.optional(position, null),
    advancedAt: field.time,
  }),

  ReplayCancelled: event(
    'webhook.replay-cancelled',
    { ...replayIds, cancelledAt: field.time },
    { isRemoval: true },
  ),
}

export type ReplayEvent = EventOf<typeof REPLAY_EVENTS>
export type ReplayRequested = EventOf<typeof REPLAY_EVENTS, 'ReplayRequested'>

/** All events of the topic webhook-events. */
export const WEBHOOK_EVENTS = { ...DELIVERY_EVENTS, ...REPLAY_EVENTS }
export type WebhookEvent = EventOf<typeof WEBHOOK_EVENTS>
