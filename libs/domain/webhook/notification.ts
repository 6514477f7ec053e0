import { constant, id, time, union, type ValueOf } from '#libs/domain/events/declare.js'

const ofMessage = { inboxId: id('inb'), messageId: id('msg'), occurredAt: time }
const ofInbox = { inboxId: id('inb'), messageId: constant(null), occurredAt: time }

/** What a webhook is notified of: an event of an inbox. Everything else in the notification is read when it is sent. */
export const notification = union('type', {
  'message.received': ofMessage,
  'message.deleted': ofMessage,
  'inbox.expired': ofInbox,
  'inbox.deleted': ofInbox,
  /** A made-up mail, to try an endpoint with. */
  sample: { inboxId: constant(null), messageId: constant(null), occurredAt: time },
})

export type Notification = ValueOf<typeof notification>
