import type { Database, RootDatabase } from 'lmdb'
import { commit } from '#libs/engines/embedded/lmdb-file/lmdb-file.js'
import {
  type LogRecord,
  type Partition,
  type PartitionRange,
  type Position,
  type StoredRecord,
  LogUnavailableError,
  type CommittedOffset,
} from '#libs/ports/event-log/event-log.js'
import { partitionCount, type TopicName } from '#libs/ports/event-log/topics.js'

/*
 * The LMDB file of the event log: the records of each topic, and the offsets that consumer groups have committed. The
 * latest records are also kept in memory.
 */

export interface Append extends Partition {
  record: LogRecord
}

type RowKey = [partition: number, offset: number]

const RECORD_OVERHEAD_BYTES = 512
const PRUNE_CHUNK = 1_000
/** In place of a group's name, which is never empty: the offset after the last record that retention has removed. */
const RETENTION = ''

/** The approximate bytes that a record with this value takes in memory and in the file. */
export function sizeWith(value: Uint8Array): number {
  return value.length + RECORD_OVERHEAD_BYTES
}

export class LmdbTopics {
  private readonly databases = new Map<TopicName, Database<Row, RowKey>>()
  private readonly ranges = new Map<TopicName, PartitionRange[]>()
  private readonly recent = new RecentRecords()

  constructor(
    private readonly root: RootDatabase<unknown, string>,
    private readonly committed: CommittedOffsets,
    /** The number of partitions of a topic that has several. */
    private readonly partitions: number,
  ) {}

  /** The current ranges. The objects are updated after every durable append. */
  rangesOf(topic: TopicName): readonly PartitionRange[] {
    let ranges = this.ranges.get(topic)
    if (ranges === undefined) {
      const count = partitionCount(topic, this.partitions)
      ranges = Array.from({ length: count }, (_, partition) => this.findRange(topic, partition))
      this.ranges.set(topic, ranges)
    }
    return ranges
  }

  /** The current range of one partition, as in `rangesOf`. Throws RangeError if the topic has no such partition. */
  rangeOf({ topic, partition }: Partition): PartitionRange {
    const range = this.rangesOf(topic)[partition]
    if (range === undefined) throw new RangeError(`${topic} has no partition ${partition}`)
    return range
  }

  /** Resolves with the positions once all records are durable. Must not be called again before that. */
  async append(appends: readonly Append[], at: Date): Promise<Position[]> {
    const added = new Map<PartitionRange, StoredRecord[]>()
    const positions = appends.map(({ topic, partition, record }) => {
      const range = this.rangeOf({ topic, partition })
      const records = added.get(range) ?? []
      const offset = range.end + records.length
      records.push({ ...record, offset })
      added.set(range, records)
      return { topic, partition, offset }
    })
    await commit(this.root, () => {
      for (const [{ topic, partition }, records] of added) {
        for (const { offset, key, headers, value } of records) {
          this.databaseOf(topic).putSync([partition, offset], {
            t: at.getTime(),
            k: key,
            h: headers,
            v: value,
          })
        }
      }
    })
    for (const [range, records] of added) {
      range.end += records.length
      this.recent.add(range, records)
    }
    return positions
  }

  /** The records from an offset on, up to `maxBytes`. Returns at least one record if there is one, of any size. */
  read(partition: Partition, from: number, maxItems: number, maxBytes: number): StoredRecord[] {
    const range = this.rangeOf(partition)
    // Records that retention has removed from the file may still be in memory.
    const recent = from < range.first ? null : this.recent.read(range, from, maxItems)
    const records: StoredRecord[] = []
    let bytes = 0
    for (const record of recent ?? this.stored({ ...range, first: from }, maxItems)) {
      bytes += sizeWith(record.value)
      if (records.length > 0 && bytes > maxBytes) break
      records.push(record)
    }
    return records
  }

  private *stored(range: PartitionRange, limit: number): Generator<StoredRecord> {
    for (const { offset, row } of this.rowsIn(range, limit)) {
      yield row === null
        ? { offset, key: '', headers: {}, value: Buffer.alloc(0) }
        : { offset, key: row.k, headers: row.h, value: Buffer.from(row.v) }
    }
  }

  /** The rows of a range. A row is null if it is damaged: consumers set its record aside, and go on. */
  private *rowsIn(
    { topic, partition, first, end }: PartitionRange,
    limit: number,
  ): Generator<{ offset: number; row: Row | null }> {
    const rows = this.databaseOf(topic)
    let [from, left] = [first, limit]
    const bounds = () => ({
      start: [partition, from] as RowKey,
      end: [partition, end] as RowKey,
      limit: left,
    })
    try {
      for (const { key, value } of rows.getRange(bounds())) {
        ;[from, left] = [key[1] + 1, left - 1]
        yield { offset: key[1], row: isRow(value) ? value : null }
      }
    } catch {
      // A row can't be decoded, which ends the iteration: the others are read one by one.
      for (const key of rows.getKeys(bounds())) yield { offset: key[1], row: readRow(rows, key) }
    }
  }

  /** Removes about PRUNE_CHUNK records appended before a time. Resolves with whether there may be more of them. */
  async pruneSome({ topic, partition }: Partition, before: Date): Promise<boolean> {
    const rows = this.databaseOf(topic)
    const range = this.rangeOf({ topic, partition })
    const offsets: number[] = []
    let oldCount = 0
    for (const { offset, row } of this.rowsIn(range, Infinity)) {
      if (row !== null && row.t >= before.getTime()) break
      offsets.push(offset)
      // A damaged row has no time: it is old if a later one is.
      if (row !== null) oldCount = offsets.length
      if (oldCount >= PRUNE_CHUNK) break
    }
    const old = offsets.slice(0, oldCount)
    const last = old.at(-1)
    if (last === undefined) return false
    await commit(this.root, () => {
      for (const offset of old) rows.removeSync([partition, offset])
      this.committed.putSync(RETENTION, { topic, partition, offset: last + 1, note: '' })
    })
    range.first = last + 1
    return old.length >= PRUNE_CHUNK
  }

  private databaseOf(topic: TopicName): Database<Row, RowKey> {
    let database = this.databases.get(topic)
    if (database === undefined) {
      database = this.root.openDB<Row, RowKey>({ name: topic, ...rowEncoding() })
      this.databases.set(topic, database)
    }
    return database
  }

  private findRange(topic: TopicName, partition: number): PartitionRange {
    const rows = this.databaseOf(topic)
    const all = { start: [partition, 0] as RowKey, end: [partition + 1, 0] as RowKey, limit: 1 }
    const [first] = rows.getKeys(all)
    const [last] = rows.getKeys({ ...all, start: [partition, Infinity], end: [partition, -1], reverse: true })
    // An empty partition has an end if its records were pruned.
    const pruned = this.committed.find(RETENTION, { topic, partition })?.offset ?? 0
    return { topic, partition, first: first?.[1] ?? pruned, end: last === undefined ? pruned : last[1] + 1 }
  }
}

function readRow(rows: Database<Row, RowKey>, key: RowKey): Row | null {
  try {
    const row = rows.get(key)
    return isRow(row) ? row : null
  } catch {
    return null
  }
}

/** Whether a decoded value has the form of a row, which it may lack if its bytes are damaged. */
function isRow(value: Partial<Row> | undefined): value is Row {
  const { t, k, h, v } = value ?? {}
  const hasHeaders = typeof h === 'object' && Object.values(h).every((text) => typeof text === 'string')
  return typeof t === 'number' && typeof k === 'string' && hasHeaders && v instanceof Uint8Array
}

/** The offset alone if its note is empty. */
type OffsetRow = number | [offset: number, note: string]

export class CommittedOffsets {
  private readonly rows: Database<OffsetRow, [group: string, topic: string, partition: number]>

  constructor(private readonly root: RootDatabase<unknown, string>) {
    this.rows = root.openDB({ name: 'committed' })
  }

  find(group: string, { topic, partition }: Partition): CommittedOffset | null {
    const row = this.rows.get([group, topic, partition])
    if (row === undefined) return null
    const [offset, note] = typeof row === 'number' ? [row, ''] : row
    return { topic, partition, offset, note }
  }

  /** Resolves once all offsets are durable. Otherwise stores none, and rejects with LogUnavailableError. */
  async put(group: string, offsets: readonly CommittedOffset[]): Promise<void> {
    try {
      await commit(this.root, () => {
        for (const offset of offsets) this.putSync(group, offset)
      })
    } catch (cause) {
      throw new LogUnavailableError(`the offsets of ${group} could not be written`, { cause })
    }
  }

  /** Must be called in a transaction. */
  putSync(group: string, { topic, partition, offset, note }: CommittedOffset): void {
    this.rows.putSync([group, topic, partition], note === '' ? offset : [offset, note])
  }
}

/** A record as it is stored. The names are short because some rows contain them. */
export interface Row {
  /** When the record was appended, in milliseconds since 1970. */
  t: number
  k: string
  h: LogRecord['headers']
  /** In a row that was read, memory of LMDB: it must be copied before the next row is read. */
  v: Uint8Array
}

const EVENT = [
  ...['ce_specversion', 'ce_id', 'ce_type', 'ce_source', 'ce_subject', 'ce_time', 'ce_schemaversion'],
  'content-type',
]
const ACCOUNT_EVENT = [...EVENT, 'ce_accountid', 'ce_environment']

/**
 * Lists of property names that a row stores as one byte, the index in this array. Rows on disk depend on it, so entries
 * may only be added at the end. An object with other properties, or in another order, is stored with its names.
 */
const STRUCTURES = [['t', 'k', 'h', 'v'], EVENT, ACCOUNT_EVENT, [...ACCOUNT_EVENT, 'ce_keyid']]

/**
 * Options for lmdb's encoder, msgpackr, with which it writes rows with these structures only. A structure that it learned
 * would be stored in the transaction that first used it, and be lost if that transaction failed. Each database needs
 * options of its own, because the encoder changes the arrays.
 *
 * Values are not copied when they are read: a copy takes as long as the rest of reading.
 */
export function rowEncoding() {
  const structures = structuredClone(STRUCTURES)
  return { encoder: { structures, maxSharedStructures: STRUCTURES.length, copyBuffers: false } } as const
}

const MAX_RECENT_BYTES = 8 << 20

/**
 * The latest records, in memory. Consumers that keep up with the log share these objects, so that a record is neither
 * read from the file nor decoded again for each of them.
 */
class RecentRecords {
  private readonly byPartition = new Map<PartitionRange, StoredRecord[]>()
  /** The records of each call of `add`, oldest first. */
  private readonly added: { range: PartitionRange; count: number; bytes: number }[] = []
  private bytes = 0

  /** The records must be durable, and follow the partition's previous ones without a gap. */
  add(range: PartitionRange, records: readonly StoredRecord[]): void {
    const bytes = records.reduce((sum, { value }) => sum + sizeWith(value), 0)
    const held = this.byPartition.get(range) ?? []
    held.push(...records)
    this.byPartition.set(range, held)
    this.added.push({ range, count: records.length, bytes })
    this.bytes += bytes
    while (this.bytes > MAX_RECENT_BYTES) this.dropOldest()
  }

  /** Up to `maxItems` records from an offset on; null if the offset is not in memory. */
  read(range: PartitionRange, from: number, maxItems: number): StoredRecord[] | null {
    const records = this.byPartition.get(range) ?? []
    const start = from - (records[0]?.offset ?? Infinity)
    return start < 0 ? null : records.slice(start, start + maxItems)
  }

  private dropOldest(): void {
    const oldest = this.added.shift()
    if (oldest === undefined) return
    this.bytes -= oldest.bytes
    this.byPartition.get(oldest.range)?.splice(0, oldest.count)
  }
}
