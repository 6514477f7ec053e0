import type { TopicName } from './topics.js'

/** A record as it stands on the log: CloudEvents attributes as headers, the event's data as the value. */
export interface LogRecord {
  /** Decides the partition; records with one key keep their order. */
  key: string
  headers: Readonly<Record<string, string>>
  value: Uint8Array
}

export interface StoredRecord extends LogRecord {
  offset: number
}

export interface Partition {
  topic: TopicName
  partition: number
}

/** Where a record stands. Offsets of a partition grow, from 0, not necessarily without gaps. */
export interface Position extends Partition {
  offset: number
}

/** What a partition holds: offsets from `first` up to, not including, `end`. */
export interface PartitionRange extends Partition {
  first: number
  end: number
}

export interface Topology {
  /** Tells this log from any other, also from an emptied one under the same name. */
  logId: string
  partitions: PartitionRange[]
}

/**
 * Every record of the offsets from `from` up to, not including, `next`: none, where the log has a gap there. A
 * partition's batches follow each other without a gap of their own.
 */
export interface RecordBatch extends Partition {
  from: number
  next: number
  records: readonly StoredRecord[]
}

/** What a consumer made of a batch: done with it, or to be given what begins at another offset. */
export type BatchOutcome = 'done' | { seekTo: number }

/**
 * Where a consumer begins in a partition that it is given: at an offset of its own, or at the group's
 * committed one (the first record where nothing was committed).
 */
export type StartPosition = { offset: number } | 'committed'

export interface ConsumerSpec {
  /** Consumers of one group share a topic's partitions. */
  group: string
  topic: TopicName
  startAt(range: PartitionRange): Promise<StartPosition>
  /**
   * Called for one batch of a partition at a time, for several partitions at once. Once it resolves, what the
   * batch asked for is durable: the group's offset is then committed. Where it rejects, the same records
   * come again after a pause. The signal tells it to hurry, by rejecting if need be: the partition is another's, or the
   * consumer is being stopped.
   */
  handle(batch: RecordBatch, signal: AbortSignal): Promise<BatchOutcome>
  /** Told of each rejection before the pause. */
  onError(error: unknown, partition: Partition): void
}

export interface Consumer {
  /** Of each partition that is this consumer's now, the offset behind all that was handled; none once it is stopped. */
  positions(): Position[]
  /** Asks for a partition's start position anew, behind the batch under way; of another consumer's does nothing. */
  locateAgain(partition: number): void
  /** Resolves once the batches under way have been handled, or given up, and no other will come. */
  stop(): Promise<void>
}

/**
 * The log that everything else follows from.
 *
 * Errors: `LogUnavailableError` where a record is not, or not known to be, durable.
 */
export interface EventLog {
  /** Tells this log from any other, as in its topology. */
  readonly logId: string
  /** The same for as long as the log is: known also while the log is out of reach. */
  partitionCount(topic: TopicName): number
  /** Resolves with the record's position once it is durable; consumers see it from then on. */
  append(topic: TopicName, record: LogRecord): Promise<Position>
  /** Resolves once the consumer's partitions have been asked for their start positions. */
  consume(spec: ConsumerSpec): Promise<Consumer>
  /** The records of a bounded range, in order, in batches. */
  read(range: PartitionRange): AsyncIterable<StoredRecord[]>
  topology(topic: TopicName): Promise<Topology>
  /** Sets a record that can't be decoded aside on `<topic>.dead-letter`; resolves once that is durable. */
  setAside(batch: Partition, record: StoredRecord, reason: string): Promise<void>
  /** Waits for appends under way, then lets go of every resource. Harmless to repeat. */
  close(): Promise<void>
}

/** The log did not take a record, or may have: it is out of reach, full, or closing. */
export class LogUnavailableError extends Error {
  override readonly name = 'LogUnavailableError'
}
