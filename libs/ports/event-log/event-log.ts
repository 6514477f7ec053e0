import { UnavailableError } from '#libs/runtime/errors.js'
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

/** Where a consumer group goes on in a partition, with a note of its own. */
export interface CommittedOffset extends Position {
  /** At most MAX_NOTE_BYTES of UTF-8; empty for none. */
  note: string
}

/** Kafka's own limit (`offset.metadata.max.bytes`) is 4,096 unless a broker is set otherwise. */
export const MAX_NOTE_BYTES = 3_500

/** What a partition holds: offsets from `first` up to, not including, `end`. */
export interface PartitionRange extends Partition {
  first: number
  end: number
}

export interface Topology {
  /** Identifies this log: an emptied one under the same name has another id. */
  logId: string
  partitions: PartitionRange[]
}

/**
 * Every record of the offsets from `from` up to, not including, `next`; none if the log has a gap there. A partition's
 * batches follow each other without a gap of their own.
 */
export interface RecordBatch extends Partition {
  from: number
  next: number
  records: readonly StoredRecord[]
}

/** What a handler made of a batch: handled all of it, or wants what begins at another offset. */
export type BatchOutcome = 'done' | { seekTo: number }

/**
 * Where a consumer begins in a partition that it is given: at an offset of its own, or at the group's committed one
 * (the first record if there is none, or if the log does not hold it). What was handled is committed in the second case
 * only.
 */
export type StartPosition = { offset: number } | 'committed'

export interface ConsumerSpec {
  /** Consumers of one group share a topic's partitions. */
  group: string
  topic: TopicName
  /** The most records of a batch, if the log can choose; Kafka's batches come as its brokers give them. */
  batchRecords?: number | undefined
  /**
   * Called each time that a partition is assigned to this consumer, also if another consumer had it in between: what was
   * gathered from it before is void then. Called again after a pause if it rejects.
   */
  startAt(range: PartitionRange): Promise<StartPosition>
  /**
   * Called for one batch of a partition at a time, for several partitions at once. Once it resolves, the effects of the
   * batch are durable: the group's offset is then committed, with an empty note. If it rejects, the same records come
   * again after a pause. The signal aborts when the partition is given to another consumer or the consumer is being
   * stopped: the handler should then finish soon or reject.
   */
  handle(batch: RecordBatch, signal: AbortSignal): Promise<BatchOutcome>
  /** Called for each rejection, before the pause. */
  onError(error: unknown, partition: Partition): void
}

export interface Consumer {
  readonly group: string
  readonly topic: TopicName
  /** For each partition assigned to this consumer, the offset behind all that was handled; none once it is stopped. */
  positions(): Position[]
  /** Asks for a partition's start position again, after the batch under way. Ignores partitions of other consumers. */
  restart(partition: number): void
  /**
   * Commits offsets of this consumer's partitions for its group, all of them or none, also while a batch is being handled.
   * Rejects with RangeError if a note is too long, and with NotAssignedError if a partition is not, or no longer,
   * assigned to this consumer: nothing is committed then. Rejects with LogUnavailableError if the outcome is not known,
   * or the group is changing: the caller may try again.
   */
  commit(offsets: readonly CommittedOffset[]): Promise<void>
  /**
   * Resolves once the batches under way are handled or given up and no other will come. After that, while the partitions
   * are still assigned, `beforeLeaving` is called: the time to commit what was gathered. If it rejects, the consumer
   * stops nevertheless, and `stop` rejects with the same error. Harmless to repeat: only the first call's
   * `beforeLeaving` is called.
   */
  stop(beforeLeaving?: () => Promise<void>): Promise<void>
}

/** What records events. */
export interface LogAppender {
  /**
   * Resolves with the record's position once it is durable; consumers see it from then on. Rejects with
   * LogUnavailableError if it is not, or not known to be.
   */
  append(topic: TopicName, record: LogRecord): Promise<Position>
}

/** What only asks where the log begins and ends. */
export interface LogLayout {
  /** Identifies this log, as in its topology. */
  readonly logId: string
  /** The same for as long as the log exists: known also while the log is out of reach. */
  partitionCount(topic: TopicName): number
  topology(topic: TopicName): Promise<Topology>
}

/** What reads the log without a consumer group. */
export interface LogReader extends LogLayout {
  /** The records of a bounded range, in order, in batches. */
  read(range: PartitionRange): AsyncIterable<StoredRecord[]>
}

/** What follows the log in a consumer group. */
export interface LogConsumers {
  /** Those that are running in this process. */
  readonly consumers: ReadonlySet<Consumer>
  /** Resolves once the consumer's first partitions have been asked for their start positions. */
  consume(spec: ConsumerSpec): Promise<Consumer>
  /** The group's committed offsets in a topic, of the partitions that have one. */
  committed(group: string, topic: SourceTopic): Promise<CommittedOffset[]>
}

/** The log that everything else follows from. */
export interface EventLog extends LogAppender, LogReader, LogConsumers {
  /** Waits for appends under way, stops the consumers and releases every resource. Harmless to repeat. */
  close(): Promise<void>
}

/** An offset was to be committed in a partition that is not assigned to the consumer. */
export class NotAssignedError extends Error {
  override readonly name = 'NotAssignedError'
}

/** The log did not take a record, or may have: it is out of reach, full, or closing. */
export class LogUnavailableError extends UnavailableError {
  override readonly name = 'LogUnavailableError'
}
