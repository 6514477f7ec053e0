import type { AccountId, InboxId, WebhookId } from '#libs/typeid/typeid.js'

/** What a webhook may be told of, by the names that its receiver sees. */
export const WEBHOOK_EVENT_TYPES = [
  'message.received',
  'message.deleted',
  'inbox.expired',
  'inbox.deleted',
] as const

export type WebhookEventType = (typeof WEBHOOK_EVENT_TYPES)[number]

/** What a webhook signs with, as it may be stored: sealed with the master key that `masterKeyId` names. */
export interface SealedSecret {
  masterKeyId: string
  sealed: Uint8Array
}

/**
 * The URL of a webhook as it may be stored: sealed as its secret is, since a URL is often a secret itself. Plain text
 * in events and views written before URLs were sealed.
 */
export type StoredUrl = SealedSecret | string

/** From when on a webhook is told of what its inboxes hold: from its registration, from the first, or from a moment. */
export type StartFrom = 'now' | 'beginning' | Date

/** Where a partition of inbox-events ended. */
export interface PartitionEnd {
  partition: number
  offset: number
}

/** Why a webhook is disabled: its owner's wish, its endpoint's 410, or days of nothing but failures. */
export type DisabledReason = 'by-request' | 'gone' | 'failing'

/** Registrations stand among the events of their account. */
export type RegistrationEvent =
  WebhookRegistered | WebhookChanged | WebhookSecretRotated | WebhookDisabled | WebhookRemoved

export interface WebhookRegistered {
  type: 'WebhookRegistered'
  accountId: AccountId
  webhookId: WebhookId
  environment: string
  /** Null for all inboxes of the environment. */
  inboxId: InboxId | null
  url: StoredUrl
  events: readonly WebhookEventType[]
  secret: SealedSecret
  startFrom: StartFrom
  /** Taken before this event was appended: of the inbox's partition, or of all. */
  positions: readonly PartitionEnd[]
  registeredAt: Date
}

/** What is null stays as it was. */
export interface WebhookChanged {
  type: 'WebhookChanged'
  accountId: AccountId
  webhookId: WebhookId
  url: StoredUrl | null
  events: readonly WebhookEventType[] | null
  state: 'active' | 'disabled' | null
  changedAt: Date
}

export interface WebhookSecretRotated {
  type: 'WebhookSecretRotated'
  accountId: AccountId
  webhookId: WebhookId
  /** Which rotation of the webhook this is, from 1 on: one that comes again, or that another was ahead of, changes nothing. */
  rotation: number
  secret: SealedSecret
  /** Until then the secret before it signs too. */
  graceEndsAt: Date
  rotatedAt: Date
}

/** By Mayfly, for how its endpoint answered. */
export interface WebhookDisabled {
  type: 'WebhookDisabled'
  accountId: AccountId
  webhookId: WebhookId
  reason: Exclude<DisabledReason, 'by-request'>
  disabledAt: Date
}

export interface WebhookRemoved {
  type: 'WebhookRemoved'
  accountId: AccountId
  webhookId: WebhookId
  removedAt: Date
}
