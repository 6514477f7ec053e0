import { bytesOf, idFromBytes, type EventId, type InboxId } from '#libs/domain/ids/typeid.js'
import {
  endsInbox,
  type InboxDeleted,
  type InboxErased,
  type InboxEvent,
  type InboxExpired,
} from './events.js'

export type InboxEnd = InboxDeleted | InboxExpired

export function isEnd(event: InboxEvent): event is InboxEnd {
  return endsInbox(event.type)
}

/** Every store rewrites its files without the deleted keys within this time (docs/operating.md, Erasure). */
const COPIES_MS = 3_600_000

/** The id of an inbox's InboxErased. Repetitions have the same one. */
export function erasureIdOf(inboxId: InboxId): EventId {
  return idFromBytes('evt', bytesOf(inboxId))
}

/** The event to record once the key of an ended inbox is deleted. `by` is the id of who caused the end; null for Mayfly. */
export function erasureAfter(end: InboxEnd, by: string | null, now: Date): InboxErased {
  const isDeleted = end.type === 'InboxDeleted'
  return {
    type: 'InboxErased',
    inboxId: end.inboxId,
    state: isDeleted ? 'deleted' : 'expired',
    endedAt: isDeleted ? end.deletedAt : end.expiredAt,
    actor: isDeleted ? by : null,
    erasedAt: now,
    copiesGoneBy: new Date(now.getTime() + COPIES_MS),
    inbox: end.inbox,
  }
}
