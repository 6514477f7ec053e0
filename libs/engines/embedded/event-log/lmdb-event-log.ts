import { randomUUID } from 'node:crypto'
import { dirname } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import type { RootDatabase } from 'lmdb'
import { closeLmdbFile, commit, openLmdbFile } from '#libs/engines/embedded/lmdb-file/lmdb-file.js'
import { Batcher } from '#libs/ports/event-log/batcher.js'
import {
  LogUnavailableError,
  type Consumer,
  type ConsumerSpec,
  type EventLog,
  type GroupPlace,
  type LogRecord,
  type Partition,
  type PartitionRange,
  type Position,
  type StoredRecord,
  type Topology,
} from '#libs/ports/event-log/event-log.js'
import { partitionOf } from '#libs/ports/event-log/partitioner.js'
import {
  deadLetterOf,
  partitionCount,
  TOPICS,
  type SourceTopic,
  type TopicName,
} from '#libs/ports/event-log/topics.js'
import { DiskRoom } from './disk-room.js'
import { GroupPlaces } from './group-places.js'
import { LmdbConsumer } from './lmdb-consumer.js'
import { LmdbTopics, sizeWith, type Append } from './lmdb-topics.js'
import { PartitionConsumer } from './partition-consumer.js'

/*
 * Relies on: lmdb 3 synced before seen, where a commit that is visible has been synced to disk, so that
 * an append's promise and a reader's view both mean "durable"; one process per folder, which libs/engines holds.
 */

export interface LmdbEventLogOptions {
  /** A file; its lock file stands beside it. */
  path: string
  /** Partitions of a topic that has several; another number than at creation is refused. */
  partitions: number
  /** How long a record of a topic is kept at least; null for ever. */
  retentionMs(topic: TopicName): number | null
  now(): Date
  /** Told where old records could not be removed; it is tried again. */
  onPruneError: (error: unknown) => void
}

const BATCH = { maxItems: 2_000, maxBatchBytes: 16 << 20, maxQueuedBytes: 256 << 20 }
const PRUNE_EVERY_MS = 3_600_000

export class LmdbEventLog implements EventLog {
  private readonly topics: LmdbTopics
  private readonly places: GroupPlaces
  private readonly room: DiskRoom
  private readonly consumers = new Set<LmdbConsumer>()
  private readonly batcher: Batcher<Append, Position>
  private readonly pruneTimer: NodeJS.Timeout
  private pruning: Promise<void> = Promise.resolve()
  private closing: Promise<void> | null = null
  readonly logId: string

  /** Throws if the file can't be opened or was made with another number of partitions. */
  static async open(options: LmdbEventLogOptions): Promise<LmdbEventLog> {
    const root = openLmdbFile<unknown, string>({ path: options.path, isSynced: 'before-seen', maxDbs: 32 })
    try {
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
    } catch (error) {
      await closeLmdbFile(root)
      throw error
    }
  }

  private constructor(
    private readonly root: RootDatabase<unknown, string>,
    logId: string,
    private readonly options: LmdbEventLogOptions,
  ) {
    this.logId = logId
    this.places = new GroupPlaces(root)
    this.room = new DiskRoom(dirname(options.path))
    this.topics = new LmdbTopics(root, this.places, options.partitions)
    this.batcher = new Batcher<Append, Position>({
      ...BATCH,
      sizeOf: ({ record }) => sizeWith(record.value),
      write: (appends) => this.write(appends),
    })
    this.pruneTimer = setInterval(() => {
      this.prune().catch(options.onPruneError)
    }, PRUNE_EVERY_MS).unref()
  }

  async append(topic: TopicName, record: LogRecord): Promise<Position> {
    if (this.isClosed) throw new LogUnavailableError('the event log is closed')
    const partition = partitionOf(record.key, this.topics.rangesOf(topic).length)
    return this.batcher.add({ topic, partition, record })
  }

  async consume(spec: ConsumerSpec): Promise<Consumer> {
    const partitions = await Promise.all(
      this.topics.rangesOf(spec.topic).map(async (range) => {
        let isCommitting = false
        const locate = async () => {
          const start = await spec.startAt({ ...range })
          isCommitting = start === 'committed'
          if (start !== 'committed') return start.offset
          return this.places.find(spec.group, range)?.offset ?? range.first
        }
        return new PartitionConsumer(spec, range, await locate(), {
          locate,
          read: (from) => this.readBatch(range, from, spec.batchRecords),
          commit: async (offset) => {
            const { topic, partition } = range
            if (isCommitting) await this.places.keep(spec.group, [{ topic, partition, offset, note: '' }])
          },
        })
      }),
    )
    const consumer = new LmdbConsumer(spec, partitions, this.places)
    this.consumers.add(consumer)
    consumer.start()
    return {
      locateAgain: (partition) => consumer.locateAgain(partition),
      positions: () => consumer.positions(),
      commit: (places) => consumer.commit(places),
      stop: (last) => consumer.stop(last).finally(() => this.consumers.delete(consumer)),
    }
  }

  // The port's readers await; this one has nothing to wait for.
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

  committed(group: string, topic: SourceTopic): Promise<GroupPlace[]> {
    const places = this.topics.rangesOf(topic).map((range) => this.places.find(group, range))
    return Promise.resolve(places.filter((place) => place !== null))
  }

  async setAside({ topic, partition }: Partition, record: StoredRecord, reason: string): Promise<void> {
    const origin = `${topic}/${partition}/${record.offset}`
    const headers = { ...record.headers, 'dead-letter-reason': reason, 'dead-letter-origin': origin }
    await this.append(deadLetterOf(topic), { key: record.key, value: record.value, headers })
  }

  /**
   * Removes what is past its topic's retention, a chunk at a time so that appends pass in between. It happens by
   * itself every hour; a second call waits for the first.
   */
  prune(): Promise<void> {
    const previous = Promise.allSettled([this.pruning])
    this.pruning = previous.then(() => this.pruneTopics())
    return this.pruning
  }

  close(): Promise<void> {
    this.closing ??= this.closeAll()
    return this.closing
  }

  private get isClosed(): boolean {
    return this.closing !== null
  }

  private async closeAll(): Promise<void> {
    clearInterval(this.pruneTimer)
    await this.batcher.close()
    await Promise.all([...this.consumers].map((consumer) => consumer.stop()))
    await Promise.allSettled([this.pruning])
    await closeLmdbFile(this.root)
  }

  private async write(appends: readonly Append[]): Promise<Position[]> {
    await this.room.mustBeLeft()
    const positions = await this.topics.append(appends, this.options.now())
    for (const consumer of this.consumers) consumer.wake()
    return positions
  }

  private readBatch(partition: Partition, from: number, maxItems = BATCH.maxItems): StoredRecord[] {
    return this.topics.read(partition, from, { maxItems, maxBytes: BATCH.maxBatchBytes })
  }

  private async pruneTopics(): Promise<void> {
    for (const topic of TOPICS) {
      const retentionMs = this.options.retentionMs(topic)
      if (retentionMs === null) continue
      const before = new Date(this.options.now().getTime() - retentionMs)
      for (const partition of this.isClosed ? [] : this.topics.rangesOf(topic)) {
        while (!this.isClosed && (await this.topics.pruneSome(partition, before))) await pause(0)
      }
    }
  }
}
