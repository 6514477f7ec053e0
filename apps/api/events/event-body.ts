import type { HistoryEntry } from '#libs/read-model/history.js'
import type { InboxId } from '#libs/typeid/typeid.js'
import { EVENT_NAMES } from '../history/history-json.js'
import { messageJson, type OpenedMessage } from '../messages/message-json.js'

/** What is left out of a message whose body would be longer, in this order; who needs it reads the message. */
const MOST_BYTES = 256_000
const LEFT_OUT = ['html', 'text', 'headers'] as const

/** A message as JSON of one line; what had to be left out is null and named in `truncated`. */
export function messageBody(entry: HistoryEntry, message: OpenedMessage, family: string): string {
  let data: Record<string, unknown> = messageJson(message, family)
  let text = bodyText(entry, data)
  const truncated: string[] = []
  for (const name of LEFT_OUT) {
    if (Buffer.byteLength(text) <= MOST_BYTES) break
    if (data[name] === null) continue
    truncated.push(name)
    data = { ...data, [name]: null, truncated }
    text = bodyText(entry, data)
  }
  return text
}

export function messageDeletedBody(entry: HistoryEntry, inboxId: InboxId): string {
  const { messageId: id, time } = entry
  return bodyText(entry, { id, inbox_id: inboxId, deleted_at: time.toISOString() })
}

export function inboxEndBody(entry: HistoryEntry, id: InboxId): string {
  const state = entry.type === 'InboxDeleted' ? 'deleted' : 'expired'
  return bodyText(entry, { id, state, ended_at: entry.time.toISOString() })
}

function bodyText({ type, time }: HistoryEntry, data: object): string {
  return JSON.stringify({ type: EVENT_NAMES[type], timestamp: time.toISOString(), data })
}
