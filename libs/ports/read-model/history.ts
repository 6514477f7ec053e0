import type { InboxEvent } from '#libs/domain/inbox/events.js'
import type { EventId, KeyId, MessageId } from '#libs/domain/ids/typeid.js'

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
