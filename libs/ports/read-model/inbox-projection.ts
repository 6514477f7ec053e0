import type { InboxEvent, MessageReceived } from '#libs/domain/inbox/events.js'
import { evolve, type ActiveInbox } from '#libs/domain/inbox/inbox.js'
import type { InboxId, MessageId } from '#libs/domain/ids/typeid.js'
import {
  type Change,
  type InboxRow,
  type MessageRow,
  historyEntry,
  type HistoryEntry,
  type PlacedEvent,
} from './views.js'
import type { MessageKey } from './projection-store.js'

/** The rows that a run of events concerns, as they stood before it. */
export interface InboxRows {
  inboxes: ReadonlyMap<InboxId, InboxRow>
  messages: ReadonlyMap<MessageId, MessageRow>
}

export interface InboxProjection {
  changes: Change[]
  /** The messages that these events added and left in place: their content goes with the changes. */
  received: { event: MessageReceived; expiresAt: Date }[]
}

/** The rows that must be known to project a run of events. */
export function rowsConcerned(events: readonly Pick<PlacedEvent<InboxEvent>, 'event'>[]): {
  inboxIds: InboxId[]
  messageKeys: MessageKey[]
} {
  const inboxIds = new Set(events.map(({ event }) => event.inboxId))
  const messageKeys = new Map<MessageId, MessageKey>()
  for (const { event } of events) {
    if ('messageId' in event) messageKeys.set(event.messageId, event)
  }
  return { inboxIds: [...inboxIds], messageKeys: [...messageKeys.values()] }
}

/**
 * What a run of one partition's events changes in the views. An event that changes nothing, since it comes again or too
 * late, is not in the history either.
 */
export function projectInboxEvents(
  before: InboxRows,
  events: readonly PlacedEvent<InboxEvent>[],
): InboxProjection {
  const inboxes = new Map<InboxId, InboxRow>()
  const messages = new Map<MessageId, { inboxId: InboxId; row: MessageRow }>()
  const received = new Map<MessageId, MessageReceived>()
  const history: { inboxId: InboxId; entry: HistoryEntry }[] = []

  for (const placed of events) {
    const { offset, event } = placed
    const { inboxId } = event
    const inboxRow = inboxes.get(inboxId) ?? before.inboxes.get(inboxId)
    const messageRow =
      'messageId' in event
        ? (messages.get(event.messageId)?.row ?? before.messages.get(event.messageId))
        : undefined
    const slice = { inbox: inboxRow?.inbox ?? null, message: messageRow?.message ?? null }
    const next = evolve(slice, event)
    if (next === slice || next.inbox === null) continue
    inboxes.set(inboxId, { inbox: next.inbox, endOffset: offset + 1 })
    history.push({ inboxId, entry: historyEntry(placed) })
    if (next.message !== null) {
      const row = { message: next.message, offset: messageRow?.offset ?? offset }
      messages.set(next.message.id, { inboxId, row })
    }
    if (event.type === 'MessageReceived') received.set(event.messageId, event)
    if (event.type === 'MessageDeleted') received.delete(event.messageId)
  }

  const changes: Change[] = []
  for (const [inboxId, row] of inboxes) {
    changes.push({ type: 'put-inbox', row, previous: before.inboxes.get(inboxId)?.inbox ?? null })
    if (row.inbox.state !== 'active') changes.push({ type: 'drop-messages', inboxId })
  }
  for (const { inboxId, row } of messages.values()) {
    if (activeInbox(inboxId) !== null) changes.push({ type: 'put-message', inboxId, row })
  }
  for (const each of history) changes.push({ type: 'put-history', ...each })
  const kept = [...received.values()].flatMap((event) => {
    const inbox = activeInbox(event.inboxId)
    return inbox === null ? [] : [{ event, expiresAt: inbox.expiresAt }]
  })
  return { changes, received: kept }

  function activeInbox(inboxId: InboxId): ActiveInbox | null {
    const inbox = inboxes.get(inboxId)?.inbox
    return inbox?.state === 'active' ? inbox : null
  }
}
