import type { InboxId, MessageId } from '#libs/typeid/typeid.js'

/** What a webhook is told of: an event of an inbox's. What it says beyond that is read when it is sent. */
export type Notification =
  | { type: 'message.received' | 'message.deleted'; inboxId: InboxId; messageId: MessageId; occurredAt: Date }
  | { type: 'inbox.expired' | 'inbox.deleted'; inboxId: InboxId; messageId: null; occurredAt: Date }
  /** A made-up mail, to try an endpoint with. */
  | { type: 'sample'; inboxId: null; messageId: null; occurredAt: Date }
