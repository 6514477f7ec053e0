import type { AccountId, DeliveryId, ReplayId, WebhookId } from '#libs/typeid/typeid.js'
import type { Notification } from './notification.js'

export type DeliveryEvent = DeliveryRequested | DeliverySucceeded | DeliveryFailed | DeliveryAbandoned

export interface DeliveryRequested {
  type: 'DeliveryRequested'
  webhookId: WebhookId
  /** The same for the same webhook, notification and replay: what is asked for twice is delivered once. */
  deliveryId: DeliveryId
  accountId: AccountId
  environment: string
  notification: Notification
  /** Null for what is told as it happens. */
  replayId: ReplayId | null
  requestedAt: Date
}

export interface DeliverySucceeded extends AttemptFacts {
  type: 'DeliverySucceeded'
  status: number
}

export interface DeliveryFailed extends AttemptFacts {
  type: 'DeliveryFailed'
  /** Null where no answer came. */
  status: number | null
  /** In a few words. */
  error: string
  /** Null where there are no more attempts. */
  nextAttemptAt: Date | null
}

export interface AttemptFacts {
  webhookId: WebhookId
  deliveryId: DeliveryId
  /** From 1 on: one that comes again, or that another was ahead of, changes nothing. */
  attempt: number
  attemptedAt: Date
  latencyMs: number
  /** The beginning of the answer, sealed with the key of the inbox, whose mail it may repeat; null for none. */
  answer: Uint8Array | null
}

export const ABANDONED_FOR = [
  'inbox-ended',
  'message-deleted',
  'webhook-disabled',
  'webhook-removed',
  'replay-cancelled',
] as const

/** Nothing is left to be sent, or nobody to send it to. */
export interface DeliveryAbandoned {
  type: 'DeliveryAbandoned'
  webhookId: WebhookId
  deliveryId: DeliveryId
  reason: (typeof ABANDONED_FOR)[number]
  abandonedAt: Date
}
