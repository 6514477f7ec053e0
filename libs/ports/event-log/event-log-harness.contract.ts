import type { EventLog, LogLayout, LogRecord, PartitionRange, StoredRecord } from './event-log.js'
import { partitionOf, type SourceTopic } from './topics.js'

/** A log for one test, with PARTITIONS partitions of inbox-events. */
export interface EventLogHarness {
  log: EventLog
  /** Closes the log and opens it again with its stored data. */
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

/** The layout of a log for tests, with only the given members. All other methods throw. */
export function layoutOf(known: Partial<LogLayout>): LogLayout {
  const unknown = () => {
    throw new Error('unknown for this log')
  }
  return { logId: 'log', partitionCount: unknown, topology: unknown, ...known }
}
