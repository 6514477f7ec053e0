import type { Account, ApiKey } from '#libs/domain/account/account.js'
import type { Inbox, Message } from '#libs/domain/inbox/inbox.js'
import type { InboxId, MessageId, WebhookId, EventId, KeyId } from '#libs/domain/ids/typeid.js'
import type { Delivery } from '#libs/domain/webhook/delivery.js'
import type { Replay } from '#libs/domain/webhook/replay.js'
import type { Webhook } from '#libs/domain/webhook/webhook.js'
import type { InboxEvent } from '#libs/domain/inbox/events.js'

/** An inbox as the view has it. Offsets are those of its partition of inbox-events. */
export interface InboxRow {
  inbox: Inbox
  /** Just past the last event that changed it: where its messages end, as far as this row knows. */
  endOffset: number
}

/** A message as the view has it, without content. A deleted one stays as a mark. */
export interface MessageRow {
  message: Message
  /** Of its MessageReceived: messages of an inbox are in this order. */
  offset: number
}

/** A message's content, sealed with its inbox's key. */
export interface MessageContent {
  inboxId: InboxId
  messageId: MessageId
  /** The parsed mail (libs/mail/message.ts) as sealed JSON. */
  body: Uint8Array
  /** Envelope and source, sealed, as they stand on the log. */
  raw: Uint8Array
  /** From then on it may be dropped by the store. */
  expiresAt: Date
}

/** A delivery as the view has it. */
export interface DeliveryRow {
  delivery: Delivery
  /** Of its DeliveryRequested on webhook-events: deliveries of a webhook are in this order. */
  offset: number
}

/** Whether a delivery was requested before then and has no attempt left to make. */
export function isOver({ delivery }: DeliveryRow, before: Date): boolean {
  return delivery.state !== 'pending' && delivery.requestedAt < before
}

/** How a webhook's deliveries have gone lately. */
export interface WebhookHealth {
  webhookId: WebhookId
  /** When the first of a row of failed attempts was made; null if the last one succeeded. */
  failingSince: Date | null
}

/** What a step does to the views. Applying one twice is applying it once. */
export type Change =
  | { type: 'put-inbox'; row: InboxRow; previous: Inbox | null }
  | { type: 'put-message'; inboxId: InboxId; row: MessageRow }
  /** Removes an ended inbox's messages, marks and content. */
  | { type: 'drop-messages'; inboxId: InboxId }
  /** Stays behind the inbox's end, for as long as the views do. */
  | { type: 'put-history'; inboxId: InboxId; entry: HistoryEntry }
  | { type: 'put-account'; account: Account }
  | { type: 'put-key'; key: ApiKey }
  | { type: 'put-delivery'; row: DeliveryRow; previous: Delivery | null }
  | { type: 'put-replay'; replay: Replay; previous: Replay | null }
  | { type: 'put-webhook-health'; health: WebhookHealth }
  | { type: 'put-webhook'; webhook: Webhook }
  /** Leaves a mark behind, so that the webhook does not come again. */
  | { type: 'remove-webhook'; webhook: Webhook }

/** An event where it stands in its partition, and what the log says of it beside its data. */
export interface PlacedEvent<Event> {
  offset: number
  id: EventId
  /** The API key that caused it; null if none did. */
  keyId: KeyId | null
  event: Event
}

/** An event that took effect, as its inbox's history has it: nothing personal, and nothing sealed. */
export interface HistoryEntry {
  /** An inbox's history is in this order. */
  offset: number
  id: EventId
  type: InboxEvent['type']
  /** When it happened. */
  time: Date
  messageId: MessageId | null
  keyId: KeyId | null
  /** Bytes of a mail's source. */
  size: number | null
  /** Hex SHA-256 of a mail's sealed bytes on the log. */
  digest: string | null
}

export function historyEntry({ offset, id, keyId, event }: PlacedEvent<InboxEvent>): HistoryEntry {
  const isMail = event.type === 'MessageReceived'
  return {
    offset,
    id,
    type: event.type,
    time: timeOf(event),
    messageId: 'messageId' in event ? event.messageId : null,
    keyId,
    size: isMail ? event.size : null,
    digest: isMail ? event.digest : null,
  }
}

function timeOf(event: InboxEvent): Date {
  switch (event.type) {
    case 'InboxCreated':
      return event.createdAt
    case 'MessageReceived':
      return event.receivedAt
    case 'MessageDeleted':
    case 'InboxDeleted':
      return event.deletedAt
    case 'InboxExpired':
      return event.expiredAt
  }
}
