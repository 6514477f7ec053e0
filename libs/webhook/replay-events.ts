import type { AccountId, DeliveryId, InboxId, ReplayId, WebhookId } from '#libs/typeid/typeid.js'

/** What stands on the log beside the deliveries that a replay asks for. */
export type ReplayEvent = ReplayRequested | ReplayAdvanced | ReplayCancelled

/** What is told again. */
export type ReplaySelection =
  /** What happened from one moment up to, not including, another; or of that, what a delivery failed to tell. */
  | { kind: 'range'; from: Date; to: Date; onlyFailed: boolean }
  | { kind: 'deliveries'; deliveryIds: readonly DeliveryId[] }
  /** The mail that was there when the webhook was registered, from a moment on or all of it: nobody has told it before. */
  | { kind: 'held'; since: Date | null }

/**
 * Where a replay goes on: behind so many of the deliveries it was given, from an offset of the webhook's deliveries
 * on, or among the mail that its inboxes hold, from an offset of one inbox on (null: before the first inbox).
 */
export type ReplayPlace =
  | { stage: 'given'; offset: number }
  | { stage: 'told'; offset: number }
  | { stage: 'held'; inboxId: InboxId | null; offset: number }

export interface ReplayRequested {
  type: 'ReplayRequested'
  webhookId: WebhookId
  replayId: ReplayId
  accountId: AccountId
  environment: string
  selection: ReplaySelection
  requestedAt: Date
}

/** Behind the deliveries of the step that it ends. */
export interface ReplayAdvanced {
  type: 'ReplayAdvanced'
  webhookId: WebhookId
  replayId: ReplayId
  /** From 1 on: one that comes again, or that another was ahead of, changes nothing. */
  step: number
  /** Null where everything has been asked for. */
  next: ReplayPlace | null
  advancedAt: Date
}

export interface ReplayCancelled {
  type: 'ReplayCancelled'
  webhookId: WebhookId
  replayId: ReplayId
  cancelledAt: Date
}
