import type { LogTopic } from '#libs/ports/event-log/topics.js'
import type { Tables } from './tables.js'

/** Whether the views of any of a topic's partitions may not show what is on the log already. */
export function isCatchingUpWith({ slots }: Tables, topic: LogTopic): boolean {
  for (const { value } of slots.getRange({ start: [topic, 0], end: [topic, Infinity] })) {
    if (value.position < value.target) return true
  }
  return false
}
