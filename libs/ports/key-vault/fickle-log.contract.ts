import {
  LogUnavailableError,
  type LogRecord,
  type PartitionRange,
  type Position,
  type StoredRecord,
  type Topology,
  type LogAppender,
  type LogReader,
} from '#libs/ports/event-log/event-log.js'
import type { TopicName } from '#libs/ports/event-log/topics.js'

type Log = LogAppender & LogReader

/** A log that may be away, for a test, or say that it failed though it has not. */
export class FickleLog implements Log {
  isAway = false
  /** Appends become durable, and are reported as failed. */
  isSilent = false
  /** What happens just before an append, once. */
  beforeAppend: (() => Promise<void>) | null = null
  /** What happens between an append's being durable and its answer, once. */
  onDurable: (() => Promise<void>) | null = null
  looks = 0

  constructor(private readonly log: () => Log) {}

  get logId(): string {
    return this.log().logId
  }

  async append(topic: TopicName, record: LogRecord): Promise<Position> {
    this.requireAvailable()
    const { beforeAppend } = this
    this.beforeAppend = null
    await beforeAppend?.()
    const position = await this.log().append(topic, record)
    const { onDurable } = this
    this.onDurable = null
    await onDurable?.()
    if (this.isSilent) throw new LogUnavailableError('no answer')
    return position
  }

  read(range: PartitionRange): AsyncIterable<StoredRecord[]> {
    this.requireAvailable()
    return this.log().read(range)
  }

  async topology(topic: TopicName): Promise<Topology> {
    this.requireAvailable()
    this.looks += 1
    return this.log().topology(topic)
  }

  partitionCount(topic: TopicName): number {
    return this.log().partitionCount(topic)
  }

  private requireAvailable(): void {
    if (this.isAway) throw new LogUnavailableError('the log is away')
  }
}
