import { hash } from 'node:crypto'
import {
  bytesOf,
  idFromBytes,
  type DeliveryId,
  type ReplayId,
  type WebhookId,
} from '#libs/domain/ids/typeid.js'
import type { Delivery } from '#libs/domain/webhook/delivery.js'
import type { Notification } from '#libs/domain/webhook/notification.js'

const ID_BYTES = 16
/** Of a UUIDv7: milliseconds since 1970. */
const TIME_BYTES = 6

/**
 * The same for the same webhook, event and replay, whoever asks for it and how often: what is asked for twice is
 * delivered once.
 */
export function deliveryIdOf(
  webhookId: WebhookId,
  { type, inboxId, messageId }: Notification,
  replayId: ReplayId | null,
): DeliveryId {
  const named = JSON.stringify([webhookId, type, inboxId, messageId, replayId])
  return idFromBytes('dlv', hash('sha256', named, 'buffer').subarray(0, ID_BYTES))
}

/** The `webhook-id` that receivers drop repeats by: that of the delivery which told it as it happened. */
export function notificationIdOf(
  webhookId: WebhookId,
  deliveryId: DeliveryId,
  told: Notification,
): DeliveryId {
  return told.type === 'sample' ? deliveryId : deliveryIdOf(webhookId, told, null)
}

/** Whether a delivery is not of a replay, but the one which told it as it happened, or of what was there before. */
export function isFirstTelling({ id, webhookId, notification }: Delivery): boolean {
  return id === deliveryIdOf(webhookId, notification, null)
}

/**
 * Of the replay that tells a new webhook what its inboxes hold: the same however often it is asked for. It has the
 * webhook's time (RFC 9562, section 5.7), and so comes before all others of it.
 */
export function firstReplayIdOf(webhookId: WebhookId): ReplayId {
  const time = bytesOf(webhookId).subarray(0, TIME_BYTES)
  const rest = hash('sha256', `held ${webhookId}`, 'buffer').subarray(TIME_BYTES, ID_BYTES)
  return idFromBytes('rpl', Buffer.concat([time, rest]))
}
