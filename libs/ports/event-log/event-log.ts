import type { SourceTopic, TopicName } from './topics.js'

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

/** A group's place in a partition, with a note of the consumer's own. */
export interface GroupPlace extends Position {
  /** Where the group goes on. */
  offset: number
  /** At most MAX_NOTE_BYTES of UTF-8; empty for none. */
  note: string
}

/** Kafka's own limit (`offset.metadata.max.bytes`) is 4,096 unless a broker is told otherwise. */
export const MAX_NOTE_BYTES = 3_500

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
 * committed one (the first record where nothing was committed). Only of the latter is committed what was handled.
 */
export type StartPosition = { offset: number } | 'committed'

export interface ConsumerSpec {
  /** Consumers of one group share a topic's partitions. */
  group: string
  topic: TopicName
  /**
   * How many records a batch has at most, where the log makes batches itself; where they come to it made, it goes by
   * those. As many as the log thinks right where nothing is said.
   */
  batchRecords?: number | undefined
  /**
   * Asked each time that the partition becomes this consumer's, also where it was another's in between: what was
   * gathered of it before is void then.
   */
  startAt(range: PartitionRange): Promise<StartPosition>
  /**
   * Called for one batch of a partition at a time, for several partitions at once. Once it resolves, what the
   * batch asked for is durable: the group's offset is then committed, with an empty note. Where it rejects, the same records
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
  /**
   * Makes places of this consumer's partitions the group's, all of them or none, whether or not a batch is being
   * handled. Rejects with RangeError if a note is too long, with NotAssignedError if a partition is not, or no
   * longer, this consumer's: none of the places is the group's then. Rejects with LogUnavailableError if that can't
   * be told, or the group is changing: it may be tried again.
   */
  commit(places: readonly GroupPlace[]): Promise<void>
  /**
   * Resolves once the batches under way have been handled, or given up, and no other will come. In between, with
   * no batch being handled and the partitions still this consumer's, `last` is called: the time to commit what was
   * gathered. Where it rejects, the consumer stops nevertheless and `stop` rejects with the same. Harmless to repeat:
   * the first call's `last` is the one.
   */
  stop(last?: () => Promise<void>): Promise<void>
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
  /** The group's places in a topic, of the partitions that have one. */
  committed(group: string, topic: SourceTopic): Promise<GroupPlace[]>
  /** Sets a record that can't be decoded aside on `<topic>.dead-letter`; resolves once that is durable. */
  setAside(batch: Partition, record: StoredRecord, reason: string): Promise<void>
  /** Waits for appends under way, then lets go of every resource. Harmless to repeat. */
  close(): Promise<void>
}

/** A place was to be committed in a partition that is another consumer's, or nobody's. */
export class NotAssignedError extends Error {
  override readonly name = 'NotAssignedError'
}

/** The log did not take a record, or may have: it is out of reach, full, or closing. */
export class LogUnavailableError extends Error {
  override readonly name = 'LogUnavailableError'
}
