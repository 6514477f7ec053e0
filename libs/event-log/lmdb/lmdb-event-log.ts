import { randomUUID } from 'node:crypto'
import { setTimeout as pause } from 'node:timers/promises'
import type { Database, RootDatabase } from 'lmdb'
import { closeLmdbFile, commit, openLmdbFile } from '#libs/lmdb-file/lmdb-file.js'
import { Batcher } from '../batcher.js'
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
} from '../event-log.js'
import { partitionOf } from '../partitioner.js'
import { deadLetterOf, partitionCount, TOPICS, type SourceTopic, type TopicName } from '../topics.js'
import { GroupPlaces } from './group-places.js'
import { LmdbConsumer } from './lmdb-consumer.js'
import { PartitionConsumer } from './partition-consumer.js'
import { rowForm, type Row } from './row-form.js'

/*
 * Relies on: lmdb 3 synced before seen, where a commit that is visible has been synced to disk, so that
 * an append's promise and a reader's view both mean "durable"; one process per folder, which libs/engine holds.
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

interface Append {
  topic: TopicName
  partition: number
  record: LogRecord
}

type RowKey = [partition: number, offset: number]

const RECORD_OVERHEAD_BYTES = 512
const BATCH = { maxItems: 2_000, maxBatchBytes: 16 << 20, maxQueuedBytes: 256 << 20 }
const PRUNE_EVERY_MS = 3_600_000
const PRUNE_CHUNK = 1_000

export class LmdbEventLog implements EventLog {
  private readonly topics = new Map<TopicName, Database<Row, RowKey>>()
  private readonly ranges = new Map<TopicName, PartitionRange[]>()
  private readonly places: GroupPlaces
  private readonly consumers = new Set<LmdbConsumer>()
  private readonly batcher: Batcher<Append, Position>
  private readonly pruneTimer: NodeJS.Timeout
  private pruning: Promise<void> = Promise.resolve()
  private closing: Promise<void> | null = null
  readonly logId: string

  /** Throws where the file can't be opened or was made with another number of partitions. */
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
    this.batcher = new Batcher<Append, Position>({
      ...BATCH,
      sizeOf: ({ record }) => record.value.length + RECORD_OVERHEAD_BYTES,
      write: (appends) => this.write(appends),
    })
    this.pruneTimer = setInterval(() => {
      this.prune().catch(options.onPruneError)
    }, PRUNE_EVERY_MS).unref()
  }

  async append(topic: TopicName, record: LogRecord): Promise<Position> {
    if (this.isClosed) throw new LogUnavailableError('the event log is closed')
    const partition = partitionOf(record.key, this.rangesOf(topic).length)
    return this.batcher.add({ topic, partition, record })
  }

  async consume(spec: ConsumerSpec): Promise<Consumer> {
    const partitions = await Promise.all(
      this.rangesOf(spec.topic).map(async (range) => {
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
      partitions: this.rangesOf(topic).map((range) => ({ ...range })),
    })
  }

  committed(group: string, topic: SourceTopic): Promise<GroupPlace[]> {
    const places = this.rangesOf(topic).map((range) => this.places.find(group, range))
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

  private topicOf(topic: TopicName): Database<Row, RowKey> {
    let database = this.topics.get(topic)
    if (database === undefined) {
      database = this.root.openDB<Row, RowKey>({ name: topic, ...rowForm() })
      this.topics.set(topic, database)
    }
    return database
  }

  /** The live ranges: their ends move with every append that has become durable. */
  private rangesOf(topic: TopicName): PartitionRange[] {
    let ranges = this.ranges.get(topic)
    if (ranges === undefined) {
      const count = partitionCount(topic, this.options.partitions)
      ranges = Array.from({ length: count }, (_, partition) => this.findRange(topic, partition))
      this.ranges.set(topic, ranges)
    }
    return ranges
  }

  private rangeOf({ topic, partition }: Partition): PartitionRange {
    const range = this.rangesOf(topic)[partition]
    if (range === undefined) throw new RangeError(`${topic} has no partition ${partition}`)
    return range
  }

  private findRange(topic: TopicName, partition: number): PartitionRange {
    const rows = this.topicOf(topic)
    const all = { start: [partition, 0] as RowKey, end: [partition + 1, 0] as RowKey, limit: 1 }
    const [first] = rows.getKeys(all)
    const [last] = rows.getKeys({ ...all, start: [partition, Infinity], end: [partition, -1], reverse: true })
    // A pruned partition may be empty and yet have an end.
    const pruned = this.places.prunedTo(topic, partition)
    return { topic, partition, first: first?.[1] ?? pruned, end: last === undefined ? pruned : last[1] + 1 }
  }

  private async write(appends: readonly Append[]): Promise<Position[]> {
    const ends = new Map<PartitionRange, number>()
    const positions = appends.map(({ topic, partition }) => {
      const range = this.rangeOf({ topic, partition })
      const offset = ends.get(range) ?? range.end
      ends.set(range, offset + 1)
      return { topic, partition, offset }
    })
    const t = this.options.now().getTime()
    await commit(this.root, () => {
      for (const [index, { topic, partition, record }] of appends.entries()) {
        const offset = positions[index]?.offset ?? 0
        const row = { t, k: record.key, h: record.headers, v: record.value }
        this.topicOf(topic).putSync([partition, offset], row)
      }
    })
    for (const [range, end] of ends) range.end = end
    for (const consumer of this.consumers) consumer.wake()
    return positions
  }

  private readBatch(
    { topic, partition }: Partition,
    from: number,
    limit: number = BATCH.maxItems,
  ): StoredRecord[] {
    const records: StoredRecord[] = []
    let bytes = 0
    const { end } = this.rangeOf({ topic, partition })
    const rows = this.topicOf(topic).getRange({
      start: [partition, from],
      end: [partition, end],
      limit,
    })
    for (const { key, value } of rows) {
      bytes += value.v.length + RECORD_OVERHEAD_BYTES
      if (records.length > 0 && bytes > BATCH.maxBatchBytes) break
      records.push({ offset: key[1], key: value.k, headers: value.h, value: Buffer.from(value.v) })
    }
    return records
  }

  private async pruneTopics(): Promise<void> {
    for (const topic of TOPICS) {
      const retentionMs = this.options.retentionMs(topic)
      if (retentionMs === null) continue
      const before = this.options.now().getTime() - retentionMs
      for (const range of this.isClosed ? [] : this.rangesOf(topic)) {
        while (!this.isClosed && (await this.pruneChunk(range, before))) await pause(0)
      }
    }
  }

  private async pruneChunk(range: PartitionRange, before: number): Promise<boolean> {
    const rows = this.topicOf(range.topic)
    const { partition } = range
    const old: RowKey[] = []
    for (const { key, value } of rows.getRange({
      start: [partition, range.first],
      end: [partition, range.end],
      limit: PRUNE_CHUNK,
    })) {
      if (value.t >= before) break
      old.push(key)
    }
    const last = old.at(-1)
    if (last === undefined) return false
    await commit(this.root, () => {
      for (const key of old) rows.removeSync(key)
      this.places.putPrunedTo(range.topic, partition, last[1] + 1)
    })
    range.first = last[1] + 1
    return old.length === PRUNE_CHUNK
  }
}
