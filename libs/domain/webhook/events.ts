import Type from 'typebox'
import {
  count,
  event,
  id,
  kind,
  list,
  object,
  oneOf,
  optional,
  readTime,
  sealedText,
  text,
  time,
  type EventOf,
  type ValueOf,
} from '#libs/domain/events/declare.js'

/** What a webhook may be told of, by the names that its receiver sees. */
export const WEBHOOK_EVENT_TYPES = [
  'message.received',
  'message.deleted',
  'inbox.expired',
  'inbox.deleted',
] as const

export type WebhookEventType = (typeof WEBHOOK_EVENT_TYPES)[number]

/** Sealed with the master key that `masterKeyId` names. */
const sealed = object({ masterKeyId: text, sealed: sealedText })

/** What a webhook signs with, as it may be stored. */
export type SealedSecret = ValueOf<typeof sealed>

/**
 * The URL of a webhook as it may be stored: sealed as its secret is, since a URL is often a secret itself. Plain text
 * in events and views written before URLs were sealed.
 */
export type StoredUrl = SealedSecret | string

const url = kind(
  Type.Union([sealed.schema, Type.String()]),
  (stored: StoredUrl) => (typeof stored === 'string' ? stored : sealed.write(stored)),
  (data): StoredUrl => (typeof data === 'string' ? data : sealed.read(data)),
)

/** From when on a webhook is told of what its inboxes hold: from its registration, from the first, or from a moment. */
export type StartFrom = 'now' | 'beginning' | Date

const startFrom = kind(
  Type.Union([Type.Enum(['now', 'beginning']), time.schema]),
  (start: StartFrom) => (start instanceof Date ? start.toISOString() : start),
  (data): StartFrom => (data === 'now' || data === 'beginning' ? data : readTime(String(data))),
)

/** Where a partition of inbox-events ended. */
const partitionEnd = object({ partition: count, offset: count })
export type PartitionEnd = ValueOf<typeof partitionEnd>

/** Why a webhook is disabled: its owner's wish, its endpoint's 410, or days of nothing but failures. */
export type DisabledReason = 'by-request' | 'gone' | 'failing'

const ids = { accountId: id('acc'), webhookId: id('whk') }
const events = list(oneOf(WEBHOOK_EVENT_TYPES))

/** Registrations stand among the events of their account. */
export const REGISTRATION_EVENTS = {
  WebhookRegistered: event('webhook.registered', {
    ...ids,
    environment: text,
    /** Null for all inboxes of the environment. */
    inboxId: optional(id('inb'), null),
    url,
    events,
    secret: sealed,
    startFrom,
    /** Taken before this event was appended: of the inbox's partition, or of all. */
    positions: list(partitionEnd),
    registeredAt: time,
  }),

  /** What is null stays as it was. */
  WebhookChanged: event('webhook.changed', {
    ...ids,
    url: optional(url, null),
    events: optional(events, null),
    state: optional(oneOf(['active', 'disabled']), null),
    changedAt: time,
  }),

  WebhookSecretRotated: event('webhook.secret-rotated', {
    ...ids,
    /** Counts rotations of the webhook from 1. One that is not higher than the last changes nothing. */
    rotation: count,
    secret: sealed,
    /** Until then the secret before it signs too. */
    graceEndsAt: time,
    rotatedAt: time,
  }),

  /** By Mayfly, for how its endpoint answered. */
  WebhookDisabled: event('webhook.disabled', {
    ...ids,
    reason: oneOf(['gone', 'failing']),
    disabledAt: time,
  }),

  WebhookRemoved: event('webhook.removed', { ...ids, removedAt: time }),
}

export type RegistrationEvent = EventOf<typeof REGISTRATION_EVENTS>
export type WebhookRegistered = EventOf<typeof REGISTRATION_EVENTS, 'WebhookRegistered'>
export type WebhookChanged = EventOf<typeof REGISTRATION_EVENTS, 'WebhookChanged'>
export type WebhookSecretRotated = EventOf<typeof REGISTRATION_EVENTS, 'WebhookSecretRotated'>
export type WebhookDisabled = EventOf<typeof REGISTRATION_EVENTS, 'WebhookDisabled'>
export type WebhookRemoved = EventOf<typeof REGISTRATION_EVENTS, 'WebhookRemoved'>
