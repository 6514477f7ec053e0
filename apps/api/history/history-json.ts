import type { Static } from 'typebox'
import { EVENT_NAMES } from '#libs/mail/json/event-names.js'
import type { HistoryEntry } from '#libs/ports/read-model/history.js'
import type { InboxId } from '#libs/domain/ids/typeid.js'
import type { Event } from './history-schemas.js'

/** An event as the contract has it, without content. `partition` is its inbox's. */
export function historyJson(entry: HistoryEntry, inboxId: InboxId, partition: number): Static<typeof Event> {
  return {
    id: entry.id,
    type: EVENT_NAMES[entry.type],
    time: entry.time.toISOString(),
    inbox_id: inboxId,
    message_id: entry.messageId,
    key_id: entry.keyId,
    position: { topic: 'inbox-events', partition, offset: entry.offset },
    size: entry.size,
    digest: entry.digest,
  }
}
