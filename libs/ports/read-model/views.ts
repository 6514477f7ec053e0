import type { EventId, Id, InboxId, KeyId, MessageId, WebhookId } from '#libs/domain/ids/typeid.js'
import { haveSamePairs } from '#libs/domain/inbox/decide.js'
import { occurredAt, type InboxChanged, type InboxEvent } from '#libs/domain/inbox/events.js'
import type { Inbox, Message } from '#libs/domain/inbox/inbox.js'
import type { Delivery } from '#libs/domain/webhook/delivery.js'
import type { EventOrigin, Recorded } from '#libs/ports/event-log/cloud-event.js'

/*
 * The rows of the views.
 */

/** An inbox. Offsets are those of its partition of inbox-events. */
export interface InboxRow {
  inbox: Inbox
  /** The offset after the last event that changed it, which is after all messages that this row counts. */
  endOffset: number
}

/** A message without its content. The row of a deleted message is kept. */
export interface MessageRow {
  message: Message
  /** The offset of its MessageReceived. Messages of an inbox are in this order. */
  offset: number
}

/** A message in the list of its environment's mail. */
export interface EnvironmentMessage {
  inboxId: InboxId
  messageId: MessageId
  receivedAt: Date
  /** The offset of its MessageReceived. The list of a partition is in this order. */
  offset: number
}

/** An event that is sent without mail, as in the history of its inbox. */
export interface EnvironmentEvent {
  inboxId: InboxId
  entry: HistoryEntry
}

/** The account and environment of an inbox, in whose lists its messages are. */
export type MailOwner = Pick<Inbox, 'accountId' | 'environment'>

export interface DeliveryRow {
  delivery: Delivery
  /** The offset of its DeliveryRequested. Deliveries of a webhook are in this order. */
  offset: number
}

/** Whether a delivery was requested before then and has ended. */
export function isOver({ delivery }: DeliveryRow, before: Date): boolean {
  return delivery.state !== 'pending' && delivery.requestedAt < before
}

/** How well a webhook's recent deliveries have worked. */
export interface WebhookHealth {
  webhookId: WebhookId
  /** When the first of the latest consecutive failed attempts was made; null if the last attempt succeeded. */
  failingSince: Date | null
}

/** An event with its offset and attributes. */
export interface LoggedEvent<Event> extends Pick<
  Recorded<Event>,
  'id' | 'time' | 'keyId' | 'origin' | 'event'
> {
  offset: number
  /** The member, inbox token or session that was used, and made with the key; null if the key itself was. */
  actor: string | null
}

export function loggedEvent<Event>(offset: number, recorded: Recorded<Event>): LoggedEvent<Event> {
  const { actor = null, ...rest } = recorded
  return { ...rest, offset, actor }
}

/** What the client may change of an inbox. */
export const CHANGEABLE = ['duration', 'name', 'labels'] as const

type Changeable = (typeof CHANGEABLE)[number]

/** An entry of an inbox's history: an event that had an effect, without personal or sealed data. */
export interface HistoryEntry {
  /** An inbox's history is in this order. */
  offset: number
  id: EventId
  type: InboxEvent['type']
  time: Date
  messageId: MessageId | null
  keyId: KeyId | null
  /** As in LoggedEvent. */
  actor: string | null
  /** Absent if no request of the API caused it. */
  origin?: EventOrigin
  /** Only of the events of tokens. */
  tokenId?: Id<'tok'>
  /** What an InboxChanged has changed; null for other events. */
  changed: readonly Changeable[] | null
  /** Bytes of a mail's source. */
  size: number | null
  /** Hex SHA-256 of a mail's sealed bytes on the log, or of the source of a mail that was dropped. */
  digest: string | null
}

/** `before` is the inbox before the event. */
export function historyEntry(
  { offset, id, keyId, actor, origin, event }: LoggedEvent<InboxEvent>,
  before: Inbox | null,
): HistoryEntry {
  const isMail = event.type === 'MessageReceived' || event.type === 'MessageDropped'
  return {
    offset,
    id,
    type: event.type,
    time: occurredAt(event),
    messageId: 'messageId' in event ? event.messageId : null,
    // Made by mail, it counts for a key that was not used.
    keyId: event.type === 'InboxCreated' && event.cause === 'mail' ? null : keyId,
    actor,
    ...('tokenId' in event ? { tokenId: event.tokenId } : {}),
    ...(origin === undefined ? {} : { origin }),
    changed: event.type === 'InboxChanged' ? changesOf(event, before) : null,
    size: isMail ? event.size : null,
    digest: isMail ? event.digest : null,
  }
}

/**
 * The event of an entry about a message, with all that `evolve` reads, so that mail need not be read from the log. Null for
 * other entries.
 */
export function messageEventOf(
  inboxId: InboxId,
  { type, messageId, time, size, digest, keyId }: HistoryEntry,
): InboxEvent | null {
  if (messageId === null) return null
  const event = { inboxId, messageId, inbox: null }
  if (type === 'MessageReceived' && size !== null && digest !== null) {
    return {
      ...event,
      type,
      receivedAt: time,
      size,
      digest,
      sealed: new Uint8Array(0),
      duplicateOf: null,
      fingerprint: null,
    }
  }
  return type === 'MessageDeleted' && keyId !== null ? { ...event, type, keyId, deletedAt: time } : null
}

/** The event has all labels, so what it has changed only follows from the inbox before it. */
function changesOf({ lifetime, sealed, inbox }: InboxChanged, before: Inbox | null): Changeable[] {
  const isChanged: Record<Changeable, boolean> = {
    duration: lifetime !== null,
    // The other sealed detail, the digest of the password, never changes.
    name: sealed !== null,
    labels: !haveSamePairs(inbox.labels, before?.labels ?? {}),
  }
  return CHANGEABLE.filter((name) => isChanged[name])
}
