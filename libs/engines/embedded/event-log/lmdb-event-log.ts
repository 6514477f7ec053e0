import { randomUUID } from 'node:crypto'
import { EventEmitter, once } from 'node:events'
import { dirname } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import type { RootDatabase } from 'lmdb'
import { closeLmdbFile, commit, openLmdbStore, FreeDisk } from '#libs/engines/embedded/lmdb-file/lmdb-file.js'
import { Batcher } from '#libs/ports/event-log/batcher.js'
import { isRemoval } from '#libs/ports/event-log/cloud-event.js'
import {
  LogUnavailableError,
  partitionName,
  type ConsumerSpec,
  type EventLog,
  type Partition,
  type PartitionRange,
  type Position,
  type StoredRecord,
} from '#libs/ports/event-log/event-log.js'
import { GroupConsumer } from '#libs/ports/event-log/group-consumer.js'
import type { PartitionSource } from '#libs/ports/event-log/partition-loop.js'
import { partitionCount, TOPICS, type TopicName, partitionOf } from '#libs/ports/event-log/topics.js'
import { pauseUntilAborted, PeriodicTask } from '#libs/runtime/timing.js'
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
  retentionMs: (topic: TopicName) => number | null
  now: () => Date
  /** Called if old records could not be removed. They are removed the next time. */
  onPruneError: (error: unknown) => void
}

export interface LmdbEventLog extends EventLog {
  /**
   * Removes records older than their topic's retention, in chunks, so that appends can run in between. Runs every hour,
   * and stops if the log is closed.
   */
  prune(): Promise<void>
}

const BATCH = { maxItems: 2_000, maxBatchBytes: 16 << 20, maxQueuedBytes: 256 << 20 }
const PRUNE_EVERY_MS = 3_600_000

/** Rejects if the file can't be opened or was created with another number of partitions. */
export function openLmdbEventLog(options: LmdbEventLogOptions): Promise<LmdbEventLog> {
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
    return lmdbEventLog(root, String(meta.get('log-id')), options)
  })
}

function lmdbEventLog(
  root: RootDatabase<unknown, string>,
  logId: string,
  { path, partitions, retentionMs, now, onPruneError }: LmdbEventLogOptions,
): LmdbEventLog {
  const offsets = new CommittedOffsets(root)
  const topics = new LmdbTopics(root, offsets, partitions)
  const disk = new FreeDisk(dirname(path))
  const consumers = new Set<GroupConsumer>()
  /** Emits the name of a partition after records were appended to it. */
  const appended = new EventEmitter().setMaxListeners(0)
  const batcher = new Batcher<Append, Position>({
    ...BATCH,
    sizeOf: ({ record }) => sizeWith(record.value),
    async write(appends) {
      const admitted = await disk.admit(appends, ({ record }) => isRemoval(record))
      const positions = await topics.append(admitted, now())
      for (const name of new Set(positions.map(partitionName))) appended.emit(name)
      if (admitted.length === appends.length) return positions
      const found = new Map(admitted.map((append, index) => [append, positions[index]]))
      return appends.map((append) => found.get(append))
    },
  })
  const pruning = new PeriodicTask({
    work: () => prune().catch(onPruneError),
    everyMs: PRUNE_EVERY_MS,
    firstAfterMs: PRUNE_EVERY_MS,
  })
  pruning.start()
  let closing: Promise<void> | null = null
  const isClosed = () => closing !== null

  return {
    logId,
    consumers,

    async append(topic, record) {
      if (isClosed()) throw new LogUnavailableError('the event log is closed')
      const partition = partitionOf(record.key, topics.rangesOf(topic).length)
      return batcher.add({ topic, partition, record })
    },

    /** Assigns all partitions to the consumer: a group has no other member. */
    async consume(spec) {
      const consumer: GroupConsumer = new GroupConsumer(spec, {
        source: (partition) => sourceOf(spec, partition),
        commit: (committed) => offsets.put(spec.group, committed),
        leave: () => {
          consumers.delete(consumer)
          return Promise.resolve()
        },
      })
      consumers.add(consumer)
      consumer.assign(topics.rangesOf(spec.topic).map(({ partition }) => partition))
      await consumer.whenStarted
      return consumer
    },

    // The port's method is asynchronous, but LMDB reads synchronously.
    // eslint-disable-next-line @typescript-eslint/require-await
    async *read(range) {
      let from = range.first
      while (from < range.end) {
        const maxItems = Math.min(BATCH.maxItems, range.end - from)
        const records = readBatch(range, from, maxItems).filter(({ offset }) => offset < range.end)
        const last = records.at(-1)
        if (last === undefined) return
        yield records
        from = last.offset + 1
      }
    },

    partitionCount: (topic) => partitionCount(topic, partitions),

    topology: (topic) =>
      Promise.resolve({ logId, partitions: topics.rangesOf(topic).map((range) => ({ ...range })) }),

    committed(group, topic) {
      const found = topics.rangesOf(topic).map((range) => offsets.find(group, range))
      return Promise.resolve(found.filter((offset) => offset !== null))
    },

    prune,

    close() {
      closing ??= closeAll()
      return closing
    },
  }

  async function prune(): Promise<void> {
    for (const topic of TOPICS) {
      const keptMs = retentionMs(topic)
      if (keptMs === null) continue
      const before = new Date(now().getTime() - keptMs)
      for (const partition of isClosed() ? [] : topics.rangesOf(topic)) {
        while (!isClosed() && (await topics.pruneSome(partition, before))) await pause(0)
      }
    }
  }

  async function closeAll(): Promise<void> {
    await batcher.close()
    await Promise.all([...consumers].map((consumer) => consumer.stop()))
    await pruning.stop()
    await closeLmdbFile(root)
  }

  function sourceOf(
    { group, topic, batchRecords, lingerMs = 0 }: ConsumerSpec,
    partition: number,
  ): PartitionSource {
    const range = topics.rangeOf({ topic, partition })
    /** Until then, by `performance.now()`, a batch waits for more records, unless it is full. */
    let lingersUntilMs = -Infinity
    return {
      range: () => Promise.resolve({ ...range }),
      committed: () => Promise.resolve(offsets.find(group, range)?.offset ?? null),
      commit: (offset) => offsets.put(group, [{ topic, partition, offset, note: '' }]),
      async next(offset, signal) {
        if (offset > range.end) return 'out-of-range'
        while (!signal.aborted) {
          const records = readBatch(range, offset, batchRecords)
          const next = (records.at(-1)?.offset ?? offset - 1) + 1
          const isFull = next < range.end || records.length === batchRecords
          const waitMs = isFull ? 0 : lingersUntilMs - performance.now()
          if (records.length === 0) await untilAppended(range, signal)
          else if (waitMs > 0) await pauseUntilAborted(Math.ceil(waitMs), signal)
          else {
            lingersUntilMs = performance.now() + lingerMs
            return { records, next }
          }
        }
        return null
      },
      close: () => undefined,
    }
  }

  async function untilAppended(range: PartitionRange, signal: AbortSignal): Promise<void> {
    await once(appended, partitionName(range), { signal }).catch((error: unknown) => {
      if (!signal.aborted) throw error
    })
  }

  function readBatch(partition: Partition, from: number, maxItems = BATCH.maxItems): StoredRecord[] {
    return topics.read(partition, from, maxItems, BATCH.maxBatchBytes)
  }
}
