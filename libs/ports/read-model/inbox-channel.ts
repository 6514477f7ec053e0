import type { InboxId } from '#libs/domain/ids/typeid.js'

/** Signalled once the views show something new of an inbox: a message, a deletion, its end. */
export function inboxChannel(inboxId: InboxId): string {
  return `inbox:${inboxId}`
}
