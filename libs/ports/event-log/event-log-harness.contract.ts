import type { EventLog, LogLayout, LogRecord, PartitionRange, StoredRecord } from './event-log.js'
import { type SourceTopic, partitionOf } from './topics.js'

/** A log of its own for one test, with PARTITIONS of inbox-events. */
export interface EventLogHarness {
  log: EventLog
  /** Closes the log and opens it again on what it stored. */
  reopen(): Promise<EventLog>
  close(): Promise<void>
}

export const PARTITIONS = 4

/** A key that belongs to a partition of inbox-events. */
export function keyIn(partition: number): string {
  for (let n = 0; ; n += 1) if (partitionOf(`key-${n}`, PARTITIONS) === partition) return `key-${n}`
}

export function record(key: string, text: string): LogRecord {
  return { key, headers: { ce_id: text }, value: Buffer.from(text) }
}

export function textOf({ value }: Pick<LogRecord, 'value'>): string {
  return Buffer.from(value).toString()
}

export async function rangeOf(log: EventLog, topic: SourceTopic, partition: number): Promise<PartitionRange> {
  const { partitions } = await log.topology(topic)
  const range = partitions.find((candidate) => candidate.partition === partition)
  if (range === undefined) throw new Error(`${topic} has no partition ${partition}`)
  return range
}

export async function recordsOf(log: EventLog, range: PartitionRange): Promise<StoredRecord[]> {
  const records: StoredRecord[] = []
  for await (const batch of log.read(range)) records.push(...batch)
  return records
}

/** A log's layout for tests of what only looks at one: asking it for anything else rejects or throws. */
export function layoutOf(known: Partial<LogLayout>): LogLayout {
  const unknown = () => {
    throw new Error('not known of this log')
  }
  return { logId: 'log', partitionCount: unknown, topology: unknown, ...known }
}
