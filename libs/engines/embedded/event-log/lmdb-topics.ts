import type { Database, RootDatabase } from 'lmdb'
import { commit } from '#libs/engines/embedded/lmdb-file/lmdb-file.js'
import type {
  LogRecord,
  Partition,
  PartitionRange,
  Position,
  StoredRecord,
} from '#libs/ports/event-log/event-log.js'
import { partitionCount, type TopicName } from '#libs/ports/event-log/topics.js'
import type { CommittedOffsets } from './committed-offsets.js'
import { rowForm, type Row } from './row-form.js'

export interface Append extends Partition {
  record: LogRecord
}

export interface ReadBounds {
  maxItems: number
  maxBytes: number
}

type RowKey = [partition: number, offset: number]

const RECORD_OVERHEAD_BYTES = 512
const PRUNE_CHUNK = 1_000

/** What a record with that value takes, about. */
export function sizeWith(value: Uint8Array): number {
  return value.length + RECORD_OVERHEAD_BYTES
}

/** The records of every topic in one file, by partition and offset. */
export class LmdbTopics {
  private readonly databases = new Map<TopicName, Database<Row, RowKey>>()
  private readonly ranges = new Map<TopicName, PartitionRange[]>()

  constructor(
    private readonly root: RootDatabase<unknown, string>,
    private readonly committed: CommittedOffsets,
    /** Of a topic that has several. */
    private readonly partitions: number,
  ) {}

  /** The live ranges: their ends move with every append that has become durable. */
  rangesOf(topic: TopicName): readonly PartitionRange[] {
    let ranges = this.ranges.get(topic)
    if (ranges === undefined) {
      const count = partitionCount(topic, this.partitions)
      ranges = Array.from({ length: count }, (_, partition) => this.findRange(topic, partition))
      this.ranges.set(topic, ranges)
    }
    return ranges
  }

  /** As `rangesOf`. Throws RangeError if the topic has no such partition. */
  rangeOf({ topic, partition }: Partition): PartitionRange {
    const range = this.rangesOf(topic)[partition]
    if (range === undefined) throw new RangeError(`${topic} has no partition ${partition}`)
    return range
  }

  /** Resolves with where they are, once all of them are durable. Calls must follow each other. */
  async append(appends: readonly Append[], at: Date): Promise<Position[]> {
    const ends = new Map<PartitionRange, number>()
    const positions = appends.map(({ topic, partition }) => {
      const range = this.rangeOf({ topic, partition })
      const offset = ends.get(range) ?? range.end
      ends.set(range, offset + 1)
      return { topic, partition, offset }
    })
    const t = at.getTime()
    await commit(this.root, () => {
      for (const [index, { topic, partition, record }] of appends.entries()) {
        const offset = positions[index]?.offset ?? 0
        const row = { t, k: record.key, h: record.headers, v: record.value }
        this.databaseOf(topic).putSync([partition, offset], row)
      }
    })
    for (const [range, end] of ends) range.end = end
    return positions
  }

  /** From an offset on; one at least where there is one, whatever its size. */
  read({ topic, partition }: Partition, from: number, { maxItems, maxBytes }: ReadBounds): StoredRecord[] {
    const records: StoredRecord[] = []
    let bytes = 0
    const { end } = this.rangeOf({ topic, partition })
    const rows = this.databaseOf(topic).getRange({
      start: [partition, from],
      end: [partition, end],
      limit: maxItems,
    })
    for (const { key, value: row } of rows) {
      bytes += sizeWith(row.v)
      if (records.length > 0 && bytes > maxBytes) break
      records.push({ offset: key[1], key: row.k, headers: row.h, value: Buffer.from(row.v) })
    }
    return records
  }

  /** Removes a few that were appended before a time; resolves with whether there may be more of them. */
  async pruneSome({ topic, partition }: Partition, before: Date): Promise<boolean> {
    const rows = this.databaseOf(topic)
    const range = this.rangeOf({ topic, partition })
    const old: RowKey[] = []
    for (const { key, value } of rows.getRange({
      start: [partition, range.first],
      end: [partition, range.end],
      limit: PRUNE_CHUNK,
    })) {
      if (value.t >= before.getTime()) break
      old.push(key)
    }
    const last = old.at(-1)
    if (last === undefined) return false
    await commit(this.root, () => {
      for (const key of old) rows.removeSync(key)
      this.committed.putPrunedTo(topic, partition, last[1] + 1)
    })
    range.first = last[1] + 1
    return old.length === PRUNE_CHUNK
  }

  private databaseOf(topic: TopicName): Database<Row, RowKey> {
    let database = this.databases.get(topic)
    if (database === undefined) {
      database = this.root.openDB<Row, RowKey>({ name: topic, ...rowForm() })
      this.databases.set(topic, database)
    }
    return database
  }

  private findRange(topic: TopicName, partition: number): PartitionRange {
    const rows = this.databaseOf(topic)
    const all = { start: [partition, 0] as RowKey, end: [partition + 1, 0] as RowKey, limit: 1 }
    const [first] = rows.getKeys(all)
    const [last] = rows.getKeys({ ...all, start: [partition, Infinity], end: [partition, -1], reverse: true })
    // A pruned partition may be empty and yet have an end.
    const pruned = this.committed.prunedTo(topic, partition)
    return { topic, partition, first: first?.[1] ?? pruned, end: last === undefined ? pruned : last[1] + 1 }
  }
}
