import {
  LogUnavailableError,
  type LogAppender,
  type LogReader,
  type LogRecord,
  type PartitionRange,
  type Position,
  type StoredRecord,
  type Topology,
} from '#libs/ports/event-log/event-log.js'
import type { TopicName } from '#libs/ports/event-log/topics.js'

type Log = LogAppender & LogReader

/** A log that a test can make unavailable, or let report failures of appends that succeeded. */
export class FaultyLog implements Log {
  isUnavailable = false
  /** Appends become durable but are reported as failed. */
  reportsFailure = false
  /** Called once, just before the next append. */
  beforeAppend: (() => Promise<void>) | null = null
  /** Called once, after the next append is durable and before it resolves. */
  onDurable: (() => Promise<void>) | null = null
  topologyCalls = 0

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
    if (this.reportsFailure) throw new LogUnavailableError('no answer')
    return position
  }

  read(range: PartitionRange): AsyncIterable<StoredRecord[]> {
    this.requireAvailable()
    return this.log().read(range)
  }

  async topology(topic: TopicName): Promise<Topology> {
    this.requireAvailable()
    this.topologyCalls += 1
    return this.log().topology(topic)
  }

  partitionCount(topic: TopicName): number {
    return this.log().partitionCount(topic)
  }

  private requireAvailable(): void {
    if (this.isUnavailable) throw new LogUnavailableError('the log is unavailable')
  }
}
