import type { InboxEvent } from '#libs/domain/inbox/events.js'

/** What an inbox's events are called in its history, in its stream and to its webhooks. */
export const EVENT_NAMES = {
  InboxCreated: 'inbox.created',
  MessageReceived: 'message.received',
  MessageDeleted: 'message.deleted',
  InboxExpired: 'inbox.expired',
  InboxDeleted: 'inbox.deleted',
} as const satisfies Record<InboxEvent['type'], string>
