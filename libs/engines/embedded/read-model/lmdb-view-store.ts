import type { Database, Key, RootDatabase } from 'lmdb'
import { commit } from '#libs/engines/embedded/lmdb-file/lmdb-file.js'
import type { Partition, PartitionRange } from '#libs/ports/event-log/event-log.js'
import { partitionOf } from '#libs/ports/event-log/topics.js'
import { TABLES } from '#libs/ports/read-model/tables.js'
import {
  isCatchingUp,
  isOwnerEnd,
  type Change,
  type Claim,
  type Contents,
  type Entry,
  type IndexedEntry,
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
import { LmdbLeases } from './lmdb-leases.js'

/*
 * The views in an LMDB file: a database for each table, index and kind of contents. Every key begins with the partition,
 * so that a partition is one range of each database. Relies on lmdb 3 with commits that are visible at once and synced to
 * disk soon after. A crash of the machine restores the last synced commit: views may lose their last steps, but stay
 * consistent.
 */

type StoredKey = (string | number)[]

interface ProgressRow {
  logId: string
  position: number
  target: number
  begunAtMs: number
}

/** Sorts after all numbers and after all ids and texts. */
const LAST = '\uffff'
const MAX_REMOVED_AT_ONCE = 500
const OWNERS_PER_PAGE = 100
const KEYS_PER_CHUNK = 500

export class LmdbViewStore implements ViewStore {
  private readonly databases = new Map<string, Database<unknown>>()
  private readonly progresses: Database<ProgressRow, StoredKey>
  private readonly leases = new LmdbLeases()

  /** Empties the file if it has views of another form. Must be called in a transaction. */
  constructor(
    private readonly root: RootDatabase<unknown, string>,
    readonly partitions: number,
    form: string,
  ) {
    const meta = root.openDB<string, string>({ name: 'meta' })
    if (meta.get('form') !== form) {
      const others = [...root.getKeys()].filter((name) => name !== 'meta')
      for (const name of others) root.openDB({ name }).dropSync()
      meta.putSync('form', form)
    }
    // A row with its own record structure takes longer to read than one with the names of its fields.
    const encoding = { encoder: { useRecords: false } }
    this.progresses = root.openDB({ name: 'progress', ...encoding })
    for (const { name, parts, indexes } of TABLES) {
      this.databases.set(name, root.openDB({ name: `row-${name}`, ...encoding }))
      for (const part of parts) {
        this.databases.set(`${name}-${part}`, root.openDB({ name: `${name}-${part}`, encoding: 'binary' }))
      }
      for (const index of indexes) {
        this.databases.set(`index-${index.name}`, root.openDB({ name: `index-${index.name}` }))
        if (!index.isTotalled) continue
        this.databases.set(`totals-${index.name}`, root.openDB({ name: `totals-${index.name}` }))
      }
    }
  }

  progress({ topic, partition }: Partition): Promise<Progress | null> {
    const row = this.progresses.get([topic, partition])
    return Promise.resolve(row === undefined ? null : { topic, partition, ...row })
  }

  async begin(logId: string, range: PartitionRange, aheadAt?: number): Promise<number | { aheadAt: number }> {
    const { topic, partition, first, end } = range
    // In one transaction, so that a step applied at the same time is not undone.
    const found = await commit(this.root, () => {
      const row = this.progresses.get([topic, partition])
      if (row?.logId !== logId) return null
      if (row.position > end) return row.position === aheadAt ? null : { aheadAt: row.position }
      // Records that the log no longer has can't be applied: the views continue from its first record.
      const position = Math.max(row.position, first)
      const begunAtMs = Math.max(Date.now(), row.begunAtMs + 1)
      this.progresses.putSync([topic, partition], { logId, position, target: end, begunAtMs })
      return position
    })
    if (found !== null) return found
    await this.clear(range)
    const created = { logId, position: first, target: end, begunAtMs: Date.now() }
    await commit(this.root, () => this.progresses.putSync([topic, partition], created))
    return first
  }

  apply({ topic, partition, from, to, changes, contents }: Step): Promise<StepOutcome> {
    return commit(this.root, (): StepOutcome => {
      const row = this.progresses.get([topic, partition])
      if (row === undefined) return 'absent'
      if (row.position !== from) return { position: row.position }
      for (const each of contents) this.putContents(partition, each)
      for (const change of changes) this.change(partition, change)
      this.progresses.putSync([topic, partition], { ...row, position: to })
      return 'applied'
    })
  }

  write({ partition }: Partition, changes: readonly RowChange[]): Promise<void> {
    return commit(this.root, () => {
      for (const change of changes) this.change(partition, change)
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
      const keys = [...this.database<unknown, StoredKey>(name).getKeys(range)]
      const last = keys.at(-1)
      if (last === undefined) return
      yield keys.map((key) => String(key.at(-1)))
      start = last
    }
  }

  content(table: TableOf<unknown>, key: RowKey, part: string): Promise<Uint8Array | null> {
    const contents = this.database<Buffer, StoredKey>(`${table.name}-${part}`)
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
    const entries = this.entriesOf(index)
    let count = 0
    for (const range of ranges) {
      if (count < max) count += entries.getKeysCount(boundsOf({ ...range, limit: max - count }))
    }
    return Promise.resolve(count)
  }

  size(index: IndexInfo): Promise<number> {
    // LMDB maintains the statistics of a database, so no entries are read.
    const { entryCount } = this.entriesOf(index).getStats() as { entryCount: number }
    return Promise.resolve(entryCount)
  }

  totals(index: IndexInfo, group: readonly string[], lasts: readonly string[]): Promise<Totals> {
    const wanted = new Set<string | number | undefined>(lasts)
    const all: Totals = { count: 0, sum: 0 }
    const text = textOf(group)
    for (let partition = 0; partition < this.partitions; partition += 1) {
      const range = { start: [partition, text], end: [partition, text, LAST] }
      for (const { key, value } of this.totalsOf(index).getRange(range)) {
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
    const key = this.database<string, string>(`index-${index.name}`).get(text)
    return key !== undefined && (await isValid(key)) ? key : null
  }

  due(queue: IndexInfo, nowMs: number, limit: number): Promise<{ partition: number; entry: Entry }[]> {
    const found: { partition: number; entry: Entry }[] = []
    for (let partition = 0; partition < this.partitions; partition += 1) {
      const range = { start: [partition], end: [partition, textOf([]), nowMs + 1] }
      let count = 0
      for (const { key, value } of this.entriesOf(queue).getRange(range)) {
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
      (from) => this.entriesOf(queue).getKeys({ start: from, end: [...start, nowMs + 1] }),
      { nowMs, untilMs, limit },
    )
    const entries = claimed.map((key) => entryOf(queue, group, key, this.entriesOf(queue).get(key) ?? ''))
    return Promise.resolve(
      entries.map((entry) => ({
        entry,
        row: table === null ? null : this.rowOfEntry(table, partition, entry),
      })),
    )
  }

  release(queue: IndexInfo, partition: number, entry: Entry, untilMs: number): Promise<void> {
    const key = keyOf(queue, partition, entry)
    if (this.entriesOf(queue).doesExist(key)) this.leases.release(queue, key, untilMs)
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
      const [key] = this.entriesOf(queue).getKeys({ start, end: [partition, LAST], limit: 1 })
      if (key === undefined) return
      const [, owner, dueAtMs] = key
      yield { owner: String(owner), dueAtMs: Number(dueAtMs) }
      start = [partition, String(owner), LAST]
    }
  }

  private mustWait({ needsCompleteViews, topic }: IndexInfo, partition: number): boolean {
    if (!needsCompleteViews) return false
    const row = this.progresses.get([topic, partition])
    return isCatchingUp(row === undefined ? null : { topic, partition, ...row })
  }

  private change(partition: number, change: Change): void {
    if (isOwnerEnd(change)) {
      const rows = this.database<unknown, StoredKey>(change.table.name)
      const range = { start: [partition, change.owner], end: [partition, change.owner, LAST] }
      const owned = [...rows.getRange(range)].map(({ value }) => value)
      for (const removal of change.removalsOf(owned)) this.change(partition, removal)
      return
    }
    const { table, key, row } = change
    const rows = this.database<unknown, StoredKey>(table.name)
    if (row === 'remove') rows.removeSync(rowKey(partition, key))
    else if (row !== 'keep') rows.putSync(rowKey(partition, key), row.put)
    for (const entry of change.remove) this.removeEntry(partition, entry)
    for (const entry of change.put) this.putEntry(partition, entry)
    if (!change.removesContents) return
    for (const part of table.parts) {
      this.database<Buffer, StoredKey>(`${table.name}-${part}`).removeSync([partition, key.key])
    }
  }

  private putEntry(partition: number, { index, entry }: IndexedEntry): void {
    if (index.kind === 'lookup') {
      this.database<string, string>(`index-${index.name}`).putSync(String(entry.sort), entry.key)
      return
    }
    const key = keyOf(index, partition, entry)
    this.entriesOf(index).putSync(key, entry.value)
    if (index.kind === 'queue') this.leases.forget(index, key)
    if (index.isTotalled) this.addToTotals(index, partition, entry, 1)
  }

  private removeEntry(partition: number, { index, entry }: IndexedEntry): void {
    if (index.kind === 'lookup') return
    const isRemoved = this.entriesOf(index).removeSync(keyOf(index, partition, entry))
    if (index.isTotalled && isRemoved) this.addToTotals(index, partition, entry, -1)
  }

  private addToTotals(index: IndexInfo, partition: number, { group, sort }: Entry, sign: 1 | -1): void {
    const totals = this.totalsOf(index)
    const key = [partition, textOf(group.slice(0, -1)), group.at(-1) ?? '']
    const before = totals.get(key) ?? { count: 0, sum: 0 }
    const after = { count: before.count + sign, sum: before.sum + sign * Number(sort) }
    if (after.count === 0) totals.removeSync(key)
    else totals.putSync(key, after)
  }

  private putContents(partition: number, { table, key, parts }: Contents): void {
    for (const [part, bytes] of Object.entries(parts)) {
      const contents = this.database<Buffer, StoredKey>(`${table.name}-${part}`)
      contents.putSync([partition, key.key], Buffer.from(bytes))
    }
  }

  private read(index: IndexInfo, range: Range): Entry[] {
    if (range.limit === 0) return []
    const found = this.entriesOf(index).getRange(boundsOf(range))
    return [...found].map(({ key, value }) => entryOf(index, range.group, key, value))
  }

  private rowOfEntry<Row>(table: TableOf<Row>, partition: number, { group, key }: Entry): Row | null {
    const owner = table.ownedBy === null ? null : (group[0] ?? null)
    return this.row(table, partition, { owner, key })
  }

  private row<Row>({ name }: TableOf<Row>, partition: number, key: RowKey): Row | null {
    return this.database<Row, StoredKey>(name).get(rowKey(partition, key)) ?? null
  }

  private partitionOf({ topic }: TableOf<unknown>, { owner, key }: RowKey): number {
    return topic === 'account-events' ? 0 : partitionOf(owner ?? key, this.partitions)
  }

  private entriesOf({ name }: IndexInfo): Database<string, StoredKey> {
    return this.database(`index-${name}`)
  }

  private totalsOf({ name }: IndexInfo): Database<Totals, StoredKey> {
    return this.database(`totals-${name}`)
  }

  /** Only this class writes into the database, so its values are of that type. */
  private database<Value, LmdbKey extends Key>(name: string): Database<Value, LmdbKey> {
    const database = this.databases.get(name)
    if (database === undefined) throw new Error(`the table or index ${name} is not declared in TABLES`)
    return database as unknown as Database<Value, LmdbKey>
  }

  /** If the process is killed midway, the progress row is gone, and the next process that begins clears the rest. */
  private async clear({ topic, partition }: PartitionRange): Promise<void> {
    await commit(this.root, () => this.progresses.removeSync([topic, partition]))
    for (const { name, parts, indexes } of TABLES.filter((table) => table.topic === topic)) {
      const ofIndexes = indexes
        .filter(({ kind }) => kind !== 'lookup')
        .flatMap((index) =>
          index.isTotalled ? [`index-${index.name}`, `totals-${index.name}`] : [`index-${index.name}`],
        )
      for (const each of [name, ...parts.map((part) => `${name}-${part}`), ...ofIndexes]) {
        const database = this.database<unknown, StoredKey>(each)
        const range = { start: [partition], end: [partition, LAST], limit: MAX_REMOVED_AT_ONCE }
        for (let removed = Infinity; removed > 0;) {
          removed = await commit(this.root, () => {
            const keys = [...database.getKeys(range)]
            for (const key of keys) database.removeSync(key)
            return keys.length
          })
        }
      }
    }
  }
}

/** Ids are never the text of several elements, which begins with a bracket. */
function textOf(group: readonly string[]): string {
  const [only] = group
  return group.length === 1 && only !== undefined ? only : JSON.stringify(group)
}

function rowKey(partition: number, { owner, key }: RowKey): StoredKey {
  return owner === null ? [partition, key] : [partition, owner, key]
}

function keyOf({ kind, sort }: IndexInfo, partition: number, entry: Entry): StoredKey {
  const start = [partition, textOf(entry.group)]
  if (kind === 'queue') return [...start, entry.dueAtMs, entry.sort, entry.key]
  return sort === 'none' ? [...start, entry.key] : [...start, entry.sort, entry.key]
}

function entryOf({ kind, sort }: IndexInfo, group: readonly string[], key: StoredKey, value: string): Entry {
  const [, , first = '', second = '', third = ''] = key
  if (kind === 'queue') {
    return { group, dueAtMs: Number(first), sort: second, key: String(third), value }
  }
  return sort === 'none'
    ? { group, sort: '', key: String(first), value, dueAtMs: 0 }
    : { group, sort: first, key: String(second), value, dueAtMs: 0 }
}

/** LMDB's ranges include their start and not their end, in the order of reading. */
function boundsOf({ partition, group, from, to, order, limit }: Range) {
  const start = [partition, textOf(group)]
  const low = from === null ? start : [...start, from]
  const high = [...start, to ?? LAST]
  return order === 'asc'
    ? { start: low, end: high, limit }
    : { start: high, end: low, limit, reverse: true, exclusiveStart: true }
}
