import type { Static } from 'typebox'
import type { ActiveInbox, EndedInbox } from '#libs/domain/inbox/inbox.js'
import type { InboxDetails } from '#libs/domain/inbox/events.js'
import type { DeletedInbox, EndedInbox as EndedInboxSchema, Inbox } from './inbox-schemas.js'

/** An active inbox as the contract has it. */
export function inboxJson(inbox: ActiveInbox, { name }: InboxDetails): Static<typeof Inbox> {
  return {
    id: inbox.id,
    address: inbox.address,
    state: inbox.state,
    duration: inbox.duration,
    password_protected: inbox.isProtected,
    name,
    labels: inbox.labels,
    environment: inbox.environment,
    created_at: inbox.createdAt.toISOString(),
    expires_at: inbox.expiresAt.toISOString(),
    message_count: inbox.messageCount,
    last_message_at: inbox.lastMessageAt?.toISOString() ?? null,
  }
}

/** An ended inbox in a list. */
export function endedInboxJson(inbox: EndedInbox): Static<typeof EndedInboxSchema> {
  return {
    id: inbox.id,
    address: inbox.address,
    state: inbox.state,
    labels: inbox.labels,
    created_at: inbox.createdAt.toISOString(),
    ended_at: inbox.endedAt.toISOString(),
    message_count: inbox.messageCount,
  }
}

/** The answer to a deletion, and to every repeat of it. */
export function deletedInboxJson({ id, address, endedAt }: EndedInbox): Static<typeof DeletedInbox> {
  return { id, address, state: 'deleted', deleted_at: endedAt.toISOString() }
}
