import { randomUUID } from 'node:crypto'
import { EventEmitter, once } from 'node:events'
import { dirname } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import type { RootDatabase } from 'lmdb'
import { closeLmdbFile, commit, openLmdbStore, FreeDisk } from '#libs/engines/embedded/lmdb-file/lmdb-file.js'
import { Batcher } from '#libs/ports/event-log/batcher.js'
import {
  LogUnavailableError,
  partitionName,
  type CommittedOffset,
  type Consumer,
  type ConsumerSpec,
  type EventLog,
  type LogRecord,
  type Partition,
  type PartitionRange,
  type Position,
  type StoredRecord,
  type Topology,
} from '#libs/ports/event-log/event-log.js'
import { GroupConsumer } from '#libs/ports/event-log/group-consumer.js'
import type { FollowingRecords, PartitionSource } from '#libs/ports/event-log/partition-loop.js'
import {
  partitionCount,
  TOPICS,
  type SourceTopic,
  type TopicName,
  partitionOf,
} from '#libs/ports/event-log/topics.js'
import { PeriodicTask } from '#libs/runtime/timing.js'
import { CommittedOffsets, LmdbTopics, sizeWith, type Append } from './log-file.js'

/*
 * Relies on lmdb 3, opened so that a commit is visible only after it was synced to disk: a record that is appended or
 * read is durable. Only one process uses the folder, which `lockDataDir` ensures.
 */

export interface LmdbEventLogOptions {
  /** A file. LMDB creates its lock file beside it. */
  path: string
  /** Partitions of a topic that has several. Opening fails if the file was created with another number. */
  partitions: number
  /** How long a record of a topic is kept at least; null if records are never removed. */
  retentionMs(topic: TopicName): number | null
  now(): Date
  /** Called if old records could not be removed. They are removed the next time. */
  onPruneError: (error: unknown) => void
}

const BATCH = { maxItems: 2_000, maxBatchBytes: 16 << 20, maxQueuedBytes: 256 << 20 }
const PRUNE_EVERY_MS = 3_600_000

export class LmdbEventLog implements EventLog {
  private readonly topics: LmdbTopics
  private readonly offsets: CommittedOffsets
  private readonly disk: FreeDisk
  /** Emits the name of a partition after records were appended to it. */
  private readonly appended = new EventEmitter().setMaxListeners(0)
  private readonly batcher: Batcher<Append, Position>
  private readonly pruning: PeriodicTask
  private closing: Promise<void> | null = null
  readonly consumers = new Set<GroupConsumer>()
  readonly logId: string

  /** Rejects if the file can't be opened or was created with another number of partitions. */
  static open(options: LmdbEventLogOptions): Promise<LmdbEventLog> {
    const file = { path: options.path, syncMode: 'before-visible', maxDbs: 32 } as const
    return openLmdbStore(file, async (root: RootDatabase<unknown, string>) => {
      const meta = root.openDB<string | number, string>({ name: 'meta' })
      if (meta.get('log-id') === undefined) {
        await commit(root, () => {
          meta.putSync('log-id', randomUUID())
          meta.putSync('partitionCount', options.partitions)
        })
      }
      const partitions = meta.get('partitionCount')
      if (partitions !== options.partitions) {
        throw new Error(
          `the event log in ${options.path} has ${String(partitions)} partitions, not ${options.partitions}; ` +
            `another number would split an inbox's order`,
        )
      }
      return new LmdbEventLog(root, String(meta.get('log-id')), options)
    })
  }

  private constructor(
    private readonly root: RootDatabase<unknown, string>,
    logId: string,
    private readonly options: LmdbEventLogOptions,
  ) {
    this.logId = logId
    this.offsets = new CommittedOffsets(root)
    this.disk = new FreeDisk(dirname(options.path))
    this.topics = new LmdbTopics(root, this.offsets, options.partitions)
    this.batcher = new Batcher<Append, Position>({
      ...BATCH,
      sizeOf: ({ record }) => sizeWith(record.value),
      write: (appends) => this.write(appends),
    })
    const work = () => this.prune().catch(options.onPruneError)
    this.pruning = new PeriodicTask({ work, everyMs: PRUNE_EVERY_MS, firstAfterMs: PRUNE_EVERY_MS })
    this.pruning.start()
  }

  async append(topic: TopicName, record: LogRecord): Promise<Position> {
    if (this.isClosed) throw new LogUnavailableError('the event log is closed')
    const partition = partitionOf(record.key, this.topics.rangesOf(topic).length)
    return this.batcher.add({ topic, partition, record })
  }

  /** Assigns all partitions to the consumer: a group has no other member. */
  async consume(spec: ConsumerSpec): Promise<Consumer> {
    const ranges = this.topics.rangesOf(spec.topic)
    const consumer = new GroupConsumer(spec, {
      source: (partition) => this.sourceOf(spec, partition),
      commit: (offsets) => this.offsets.put(spec.group, offsets),
      leave: () => {
        this.consumers.delete(consumer)
        return Promise.resolve()
      },
    })
    this.consumers.add(consumer)
    consumer.assign(ranges.map(({ partition }) => partition))
    await consumer.whenStarted
    return consumer
  }

  // The port's method is asynchronous, but LMDB reads synchronously.
  // eslint-disable-next-line @typescript-eslint/require-await
  async *read(range: PartitionRange): AsyncIterable<StoredRecord[]> {
    let from = range.first
    while (from < range.end) {
      const records = this.readBatch(range, from).filter(({ offset }) => offset < range.end)
      const last = records.at(-1)
      if (last === undefined) return
      yield records
      from = last.offset + 1
    }
  }

  partitionCount(topic: TopicName): number {
    return partitionCount(topic, this.options.partitions)
  }

  topology(topic: TopicName): Promise<Topology> {
    return Promise.resolve({
      logId: this.logId,
      partitions: this.topics.rangesOf(topic).map((range) => ({ ...range })),
    })
  }

  committed(group: string, topic: SourceTopic): Promise<CommittedOffset[]> {
    const offsets = this.topics.rangesOf(topic).map((range) => this.offsets.find(group, range))
    return Promise.resolve(offsets.filter((offset) => offset !== null))
  }

  /**
   * Removes records older than their topic's retention, in chunks, so that appends can run in between. Runs every hour,
   * and stops if the log is closed.
   */
  async prune(): Promise<void> {
    for (const topic of TOPICS) {
      const retentionMs = this.options.retentionMs(topic)
      if (retentionMs === null) continue
      const before = new Date(this.options.now().getTime() - retentionMs)
      for (const partition of this.isClosed ? [] : this.topics.rangesOf(topic)) {
        while (!this.isClosed && (await this.topics.pruneSome(partition, before))) await pause(0)
      }
    }
  }

  close(): Promise<void> {
    this.closing ??= this.closeAll()
    return this.closing
  }

  private get isClosed(): boolean {
    return this.closing !== null
  }

  private async closeAll(): Promise<void> {
    await this.batcher.close()
    await Promise.all([...this.consumers].map((consumer) => consumer.stop()))
    await this.pruning.stop()
    await closeLmdbFile(this.root)
  }

  private async write(appends: readonly Append[]): Promise<Position[]> {
    await this.disk.require()
    const positions = await this.topics.append(appends, this.options.now())
    for (const name of new Set(positions.map(partitionName))) this.appended.emit(name)
    return positions
  }

  private sourceOf({ group, topic, batchRecords }: ConsumerSpec, partition: number): PartitionSource {
    const range = this.topics.rangeOf({ topic, partition })
    return {
      range: () => Promise.resolve({ ...range }),
      committed: () => Promise.resolve(this.offsets.find(group, range)?.offset ?? null),
      commit: (offset) => this.offsets.put(group, [{ topic, partition, offset, note: '' }]),
      next: (offset, signal) => this.next(range, offset, batchRecords, signal),
      close: () => undefined,
    }
  }

  private async next(
    range: PartitionRange,
    offset: number,
    batchRecords: number | undefined,
    signal: AbortSignal,
  ): Promise<FollowingRecords | 'out-of-range' | null> {
    if (offset > range.end) return 'out-of-range'
    while (!signal.aborted) {
      const records = this.readBatch(range, offset, batchRecords)
      const last = records.at(-1)
      if (last !== undefined) return { records, next: last.offset + 1 }
      await once(this.appended, partitionName(range), { signal }).catch((error: unknown) => {
        if (!signal.aborted) throw error
      })
    }
    return null
  }

  private readBatch(partition: Partition, from: number, maxItems = BATCH.maxItems): StoredRecord[] {
    return this.topics.read(partition, from, maxItems, BATCH.maxBatchBytes)
  }
}
