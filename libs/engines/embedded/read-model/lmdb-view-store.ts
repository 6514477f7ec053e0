import type { RootDatabase } from 'lmdb'
import { commit } from '#libs/engines/embedded/lmdb-file/lmdb-file.js'
import type { Partition, PartitionRange } from '#libs/ports/event-log/event-log.js'
import { partitionOf } from '#libs/ports/event-log/topics.js'
import {
  isCatchingUp,
  ownerOf,
  type Claim,
  type Entry,
  type IndexInfo,
  type Progress,
  type Range,
  type RowChange,
  type RowKey,
  type Step,
  type StepOutcome,
  type TableOf,
  type Totals,
  type ViewStore,
} from '#libs/ports/read-model/view-store.js'
import { boundsOf, entryKey, entryOf, LAST, rowKey, textOf, type StoredKey } from './lmdb-keys.js'
import { LmdbLeases } from './lmdb-leases.js'
import { LmdbTables } from './lmdb-tables.js'

const OWNERS_PER_PAGE = 100
const KEYS_PER_CHUNK = 500

/**
 * The views in an LMDB file. Relies on lmdb 3 with commits that are visible at once and synced to disk soon after. A crash
 * of the machine restores the last synced commit: views may lose their last steps, but stay consistent.
 */
export class LmdbViewStore implements ViewStore {
  private readonly leases = new LmdbLeases()
  private readonly tables: LmdbTables

  /** Empties the file if it has views of another form. Must be called in a transaction. */
  constructor(
    private readonly root: RootDatabase<unknown, string>,
    readonly partitions: number,
    form: string,
  ) {
    this.tables = new LmdbTables(root, form, (queue, key) => this.leases.forget(queue, key))
  }

  progress({ topic, partition }: Partition): Promise<Progress | null> {
    const row = this.tables.progresses.get([topic, partition])
    return Promise.resolve(row === undefined ? null : { topic, partition, ...row })
  }

  async begin(logId: string, range: PartitionRange, aheadAt?: number): Promise<number | { aheadAt: number }> {
    const { topic, partition, first, end } = range
    // In one transaction, so that a step applied at the same time is not undone.
    const found = await commit(this.root, () => {
      const row = this.tables.progresses.get([topic, partition])
      if (row?.logId !== logId) return null
      if (row.position > end) return row.position === aheadAt ? null : { aheadAt: row.position }
      // Records that the log no longer has can't be applied: the views continue from its first record.
      const position = Math.max(row.position, first)
      const begunAtMs = Math.max(Date.now(), row.begunAtMs + 1)
      this.tables.progresses.putSync([topic, partition], { logId, position, target: end, begunAtMs })
      return position
    })
    if (found !== null) return found
    await this.tables.clear(range)
    const created = { logId, position: first, target: end, begunAtMs: Date.now() }
    await commit(this.root, () => this.tables.progresses.putSync([topic, partition], created))
    return first
  }

  apply({ topic, partition, from, to, changes, contents }: Step): Promise<StepOutcome> {
    return commit(this.root, (): StepOutcome => {
      const row = this.tables.progresses.get([topic, partition])
      if (row === undefined) return 'absent'
      if (row.position !== from) return { position: row.position }
      for (const each of contents) this.tables.putContents(partition, each)
      for (const change of changes) this.tables.change(partition, change)
      this.tables.progresses.putSync([topic, partition], { ...row, position: to })
      return 'applied'
    })
  }

  write({ partition }: Partition, changes: readonly RowChange[]): Promise<void> {
    return commit(this.root, () => {
      for (const change of changes) this.tables.change(partition, change)
    })
  }

  rows<Row>(table: TableOf<Row>, keys: readonly RowKey[]): Promise<(Row | null)[]> {
    return Promise.resolve(keys.map((key) => this.row(table, this.partitionOf(table, key), key)))
  }

  // The port's method is asynchronous, but LMDB reads synchronously.
  // eslint-disable-next-line @typescript-eslint/require-await
  async *keysOf({ name }: TableOf<unknown>): AsyncGenerator<string[]> {
    let start: StoredKey = [0]
    for (;;) {
      // A read must not stay open during writes.
      const range = { start, end: [Infinity], limit: KEYS_PER_CHUNK, exclusiveStart: true }
      const keys = [...this.tables.rows(name).getKeys(range)]
      const last = keys.at(-1)
      if (last === undefined) return
      yield keys.map((key) => String(key.at(-1)))
      start = last
    }
  }

  content(table: TableOf<unknown>, key: RowKey, part: string): Promise<Uint8Array | null> {
    const contents = this.tables.contents(table, part)
    return Promise.resolve(contents.get([this.partitionOf(table, key), key.key]) ?? null)
  }

  entries(index: IndexInfo, ranges: readonly Range[]): Promise<Entry[][]> {
    return Promise.resolve(ranges.map((range) => this.read(index, range)))
  }

  entriesWithRows<Row>(
    index: IndexInfo,
    table: TableOf<Row>,
    ranges: readonly Range[],
  ): Promise<{ entry: Entry; row: Row | null }[][]> {
    return Promise.resolve(
      ranges.map((range) =>
        this.read(index, range).map((entry) => ({
          entry,
          row: this.rowOfEntry(table, range.partition, entry),
        })),
      ),
    )
  }

  count(index: IndexInfo, ranges: readonly Range[], max: number): Promise<number> {
    const entries = this.tables.entries(index)
    let count = 0
    for (const range of ranges) {
      if (count < max) count += entries.getKeysCount(boundsOf({ ...range, limit: max - count }))
    }
    return Promise.resolve(count)
  }

  size(index: IndexInfo): Promise<number> {
    // LMDB maintains the statistics of a database, so no entries are read.
    const { entryCount } = this.tables.entries(index).getStats() as { entryCount: number }
    return Promise.resolve(entryCount)
  }

  totals(index: IndexInfo, group: readonly string[], lasts: readonly string[]): Promise<Totals> {
    const wanted = new Set<string | number | undefined>(lasts)
    const all: Totals = { count: 0, sum: 0 }
    const text = textOf(group)
    for (let partition = 0; partition < this.partitions; partition += 1) {
      const range = { start: [partition, text], end: [partition, text, LAST] }
      for (const { key, value } of this.tables.totals(index).getRange(range)) {
        if (!wanted.has(key[2])) continue
        all.count += value.count
        all.sum += value.sum
      }
    }
    return Promise.resolve(all)
  }

  async lookup(
    index: IndexInfo,
    text: string,
    isValid: (key: string) => Promise<boolean>,
  ): Promise<string | null> {
    const key = this.tables.lookups(index).get(text)
    return key !== undefined && (await isValid(key)) ? key : null
  }

  due(queue: IndexInfo, nowMs: number, limit: number): Promise<{ partition: number; entry: Entry }[]> {
    const found: { partition: number; entry: Entry }[] = []
    for (let partition = 0; partition < this.partitions; partition += 1) {
      const range = { start: [partition], end: [partition, textOf([]), nowMs + 1] }
      let count = 0
      for (const { key, value } of this.tables.entries(queue).getRange(range)) {
        if (this.leases.isLeased(queue, key, nowMs)) continue
        found.push({ partition, entry: entryOf(queue, [], key, value) })
        count += 1
        if (count >= limit) break
      }
    }
    return Promise.resolve(found)
  }

  claim<Row>(
    queue: IndexInfo,
    table: TableOf<Row> | null,
    { partition, group, nowMs, untilMs, limit }: Claim,
  ): Promise<{ entry: Entry; row: Row | null }[]> {
    if (limit === 0 || this.mustWait(queue, partition)) return Promise.resolve([])
    const start = [partition, textOf(group)]
    const claimed: StoredKey[] = this.leases.claim(
      queue,
      start,
      (from) => this.tables.entries(queue).getKeys({ start: from, end: [...start, nowMs + 1] }),
      { nowMs, untilMs, limit },
    )
    const entries = claimed.map((key) =>
      entryOf(queue, group, key, this.tables.entries(queue).get(key) ?? ''),
    )
    return Promise.resolve(
      entries.map((entry) => ({
        entry,
        row: table === null ? null : this.rowOfEntry(table, partition, entry),
      })),
    )
  }

  release(queue: IndexInfo, partition: number, entry: Entry, untilMs: number): Promise<void> {
    const key = entryKey(queue, partition, entry)
    if (this.tables.entries(queue).doesExist(key)) this.leases.release(queue, key, untilMs)
    return Promise.resolve()
  }

  // eslint-disable-next-line @typescript-eslint/require-await
  async *dueOwners(queue: IndexInfo, nowMs: number): AsyncGenerator<string[]> {
    let page: string[] = []
    for (let partition = 0; partition < this.partitions; partition += 1) {
      if (this.mustWait(queue, partition)) continue
      for (const { owner, dueAtMs } of this.owners(queue, partition)) {
        if (dueAtMs <= nowMs) page.push(owner)
        if (page.length < OWNERS_PER_PAGE) continue
        yield page
        page = []
      }
    }
    yield page
  }

  earliestDueMs(queue: IndexInfo): Promise<number | null> {
    let earliest = Infinity
    for (let partition = 0; partition < this.partitions; partition += 1) {
      for (const { dueAtMs } of this.owners(queue, partition)) earliest = Math.min(earliest, dueAtMs)
    }
    return Promise.resolve(earliest === Infinity ? null : earliest)
  }

  /** The owners with entries in a queue, and when the first entry of each is due. */
  private *owners(queue: IndexInfo, partition: number): Generator<{ owner: string; dueAtMs: number }> {
    let start: StoredKey = [partition]
    for (;;) {
      const [key] = this.tables.entries(queue).getKeys({ start, end: [partition, LAST], limit: 1 })
      if (key === undefined) return
      const [, owner, dueAtMs] = key
      yield { owner: String(owner), dueAtMs: Number(dueAtMs) }
      start = [partition, String(owner), LAST]
    }
  }

  private mustWait({ needsCompleteViews, topic }: IndexInfo, partition: number): boolean {
    if (!needsCompleteViews) return false
    const row = this.tables.progresses.get([topic, partition])
    return isCatchingUp(row === undefined ? null : { topic, partition, ...row })
  }

  private read(index: IndexInfo, range: Range): Entry[] {
    if (range.limit === 0) return []
    const found = this.tables.entries(index).getRange(boundsOf(range))
    return [...found].map(({ key, value }) => entryOf(index, range.group, key, value))
  }

  private rowOfEntry<Row>(table: TableOf<Row>, partition: number, { group, key }: Entry): Row | null {
    return this.row(table, partition, { owner: ownerOf(table, group), key })
  }

  private row<Row>({ name }: TableOf<Row>, partition: number, key: RowKey): Row | null {
    return (this.tables.rows(name).get(rowKey(partition, key)) ?? null) as Row | null
  }

  private partitionOf({ topic }: TableOf<unknown>, { owner, key }: RowKey): number {
    return topic === 'account-events' ? 0 : partitionOf(owner ?? key, this.partitions)
  }
}
