import type { LogAppender, Partition, StoredRecord } from './event-log.js'
import { deadLetterOf } from './topics.js'

/**
 * Appends a copy of a record that can't be decoded to `<topic>.dead-letter`, with the reason and where it stands.
 * Resolves once the copy is durable. Rejects as `append` does.
 */
export async function appendDeadLetter(
  log: LogAppender,
  { topic, partition }: Partition,
  { key, headers, value, offset }: StoredRecord,
  reason: string,
): Promise<void> {
  const origin = `${topic}/${partition}/${offset}`
  const described = { ...headers, 'dead-letter-reason': reason, 'dead-letter-origin': origin }
  await log.append(deadLetterOf(topic), { key, value, headers: described })
}
