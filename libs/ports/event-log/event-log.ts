import { NamedError, UnavailableError } from '#libs/runtime/errors.js'
import type { SourceTopic, TopicName } from './topics.js'

/** A record of the log: CloudEvents attributes as headers, the event's data as the value. */
export interface LogRecord {
  /** Decides the partition. Records with the same key keep their order. */
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

/** A partition as text, for keys and messages. */
export function partitionName({ topic, partition }: Partition): string {
  return `${topic}/${partition}`
}

/** The position of a record. Offsets of a partition increase from 0, possibly with gaps. */
export interface Position extends Partition {
  offset: number
}

/** The offset at which a consumer group continues in a partition, with a note for its own use. */
export interface CommittedOffset extends Position {
  /** At most MAX_NOTE_BYTES of UTF-8; empty for none. */
  note: string
}

/** Kafka's limit (`offset.metadata.max.bytes`) is 4,096 by default. */
export const MAX_NOTE_BYTES = 3_500

/** The offsets that a partition holds, from `first` up to, not including, `end`. */
export interface PartitionRange extends Partition {
  first: number
  end: number
}

export interface Topology {
  /** Identifies the log. A log that was emptied and created again has another id. */
  logId: string
  partitions: PartitionRange[]
}

/**
 * All records with offsets from `from` up to, not including, `next`; none if the log has a gap there. A batch starts
 * where the previous batch of its partition ended.
 */
export interface RecordBatch extends Partition {
  from: number
  next: number
  records: readonly StoredRecord[]
}

/** The result of a handler: the batch is done, or the consumer must continue at another offset. */
export type BatchOutcome = 'done' | { seekTo: number }

/**
 * The start of a consumer in a partition that is assigned to it: at the given offset, or at the group's committed offset
 * (the first record if there is none, or if the log no longer holds it). Only in the second case are handled batches
 * committed.
 */
export type StartPosition = { offset: number } | 'committed'

export interface ConsumerSpec {
  /** Consumers of one group share a topic's partitions. */
  group: string
  topic: TopicName
  /** Maximum records of a batch, if the log can choose. Kafka's batches are as large as its brokers make them. */
  batchRecords?: number | undefined
  /**
   * How long after a batch further records may wait, so that the next batch is larger and costs less for each of them; 0
   * by default. A full batch does not wait.
   */
  lingerMs?: number | undefined
  /**
   * Called whenever a partition is assigned to this consumer, even if it had the partition before: another consumer may
   * have had it in between, so that data gathered from it before is void. Called again after a pause if it rejects.
   */
  startAt(range: PartitionRange): Promise<StartPosition>
  /**
   * Called with one batch of a partition at a time, concurrently for several partitions. When it resolves, the effects of
   * the batch must be durable: the group's offset is committed soon after, with an empty note. If it rejects, the same
   * records are delivered again after a pause. The signal aborts when the partition is assigned to another consumer or the
   * consumer is being stopped: the handler should then finish soon or reject.
   */
  handle(batch: RecordBatch, signal: AbortSignal): Promise<BatchOutcome>
  /** Called for each rejection, before the pause. */
  onError(error: unknown, partition: Partition): void
}

export interface Consumer {
  readonly group: string
  readonly topic: TopicName
  /** For each assigned partition, the offset after the last handled batch. Empty once the consumer is stopped. */
  positions(): Position[]
  /** Requests a partition's start position again, after the batch in progress. Ignores unassigned partitions. */
  restart(partition: number): void
  /**
   * Commits offsets of this consumer's partitions for its group, all of them or none, also while a batch is being handled.
   * Rejects with RangeError if a note is too long, and with NotAssignedError if a partition is not, or no longer,
   * assigned to this consumer: nothing is committed then. Rejects with LogUnavailableError if the outcome is not known,
   * or the group is changing: the caller may try again.
   */
  commit(offsets: readonly CommittedOffset[]): Promise<void>
  /** Resolves once the batches in progress have been handled or given up, and the group is left. May be called again. */
  stop(): Promise<void>
}

export interface LogAppender {
  /**
   * Resolves with the record's position once it is durable; from then on consumers receive it. Rejects with
   * LogUnavailableError if it is not, or may not be, durable.
   */
  append(topic: TopicName, record: LogRecord): Promise<Position>
}

export interface LogLayout {
  readonly logId: string
  /** Constant for the lifetime of the log, and known while the log is unavailable. */
  partitionCount(topic: TopicName): number
  topology(topic: TopicName): Promise<Topology>
}

/** The log's id and the current range of a partition. Throws RangeError if there is no such partition. */
export async function findRange(
  log: LogLayout,
  { topic, partition }: Partition,
): Promise<{ logId: string; range: PartitionRange }> {
  const { logId, partitions } = await log.topology(topic)
  const range = partitions.find((candidate) => candidate.partition === partition)
  if (range === undefined) throw new RangeError(`${topic} has no partition ${partition}`)
  return { logId, range }
}

/** Reads the log without a consumer group. */
export interface LogReader extends LogLayout {
  /** The records of a bounded range, in order, in batches. */
  read(range: PartitionRange): AsyncIterable<StoredRecord[]>
}

export interface LogConsumers {
  /** The consumers that are running in this process. */
  readonly consumers: ReadonlySet<Consumer>
  /** Resolves once the start positions of the consumer's first partitions are known. */
  consume(spec: ConsumerSpec): Promise<Consumer>
  /** The group's committed offsets in a topic, of the partitions that have one. */
  committed(group: string, topic: SourceTopic): Promise<CommittedOffset[]>
}

export interface EventLog extends LogAppender, LogReader, LogConsumers {
  /** Waits for appends in progress, stops the consumers and releases all resources. May be called again. */
  close(): Promise<void>
}

/** A commit was requested for a partition that is not assigned to the consumer. */
export class NotAssignedError extends NamedError {}

/** The log is unavailable, full or closing. A record may nevertheless have been appended. */
export class LogUnavailableError extends UnavailableError {}
