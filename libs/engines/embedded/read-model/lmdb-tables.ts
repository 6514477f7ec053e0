import type { Database, Key, RootDatabase } from 'lmdb'
import { commit } from '#libs/engines/embedded/lmdb-file/lmdb-file.js'
import type { PartitionRange } from '#libs/ports/event-log/event-log.js'
import { TABLES } from '#libs/ports/read-model/tables.js'
import {
  isOwnerEnd,
  type Change,
  type Contents,
  type IndexedEntry,
  type IndexInfo,
  type TableOf,
  type Totals,
} from '#libs/ports/read-model/view-store.js'
import { TotalChanges, type TotalChange } from '#libs/ports/read-model/total-changes.js'
import { entryKey, LAST, rowKey, textOf, type StoredKey } from './lmdb-keys.js'

interface ProgressRow {
  logId: string
  position: number
  target: number
  begunAtMs: number
}

const MAX_REMOVED_AT_ONCE = 500
/** A row with its own record structure takes longer to read than one with the names of its fields. */
const ROW_ENCODING = { encoder: { useRecords: false } }

/** The databases of a table: its rows, contents and indexes. */
function databasesOf({
  name,
  parts,
  indexes,
}: (typeof TABLES)[number]): { name: string; options?: object }[] {
  return [
    { name: `row-${name}`, options: ROW_ENCODING },
    ...parts.map((part) => ({ name: `${name}-${part}`, options: { encoding: 'binary' } })),
    ...indexes.map((index) => ({ name: `index-${index.name}` })),
    ...indexes.filter(({ isTotalled }) => isTotalled).map((index) => ({ name: `totals-${index.name}` })),
  ]
}

/** The databases of the file, one for each table, index and kind of contents. Changes must be made in a transaction. */
export class LmdbTables {
  readonly progresses: Database<ProgressRow, StoredKey>
  private readonly databases = new Map<string, Database<unknown>>()

  /** Empties the file if it has views of another form. Must be called in a transaction. */
  constructor(
    private readonly root: RootDatabase<unknown, string>,
    form: string,
    /** Called when an entry of a queue is put. */
    private readonly onQueued: (queue: IndexInfo, key: StoredKey) => void,
  ) {
    const meta = root.openDB<string, string>({ name: 'meta' })
    if (meta.get('form') !== form) {
      const others = [...root.getKeys()].filter((name) => name !== 'meta')
      for (const name of others) root.openDB({ name }).dropSync()
      meta.putSync('form', form)
    }
    this.progresses = root.openDB({ name: 'progress', ...ROW_ENCODING })
    for (const { name, options } of TABLES.flatMap(databasesOf)) {
      this.databases.set(name, root.openDB({ name, ...options }))
    }
  }

  entries({ name }: IndexInfo): Database<string, StoredKey> {
    return this.database(`index-${name}`)
  }

  totals({ name }: IndexInfo): Database<Totals, StoredKey> {
    return this.database(`totals-${name}`)
  }

  rows(name: string): Database<unknown, StoredKey> {
    return this.database(`row-${name}`)
  }

  contents({ name }: TableOf<unknown>, part: string): Database<Buffer, StoredKey> {
    return this.database(`${name}-${part}`)
  }

  /** By text. Keys may be out of date: they stay when a partition is emptied. */
  lookups({ name }: IndexInfo): Database<string, string> {
    return this.database(`index-${name}`)
  }

  change(partition: number, changes: readonly Change[]): void {
    const totals = new TotalChanges()
    for (const change of changes) this.changeRow(partition, change, totals)
    for (const change of totals.all()) this.addToTotals(partition, change)
  }

  private changeRow(partition: number, change: Change, totals: TotalChanges): void {
    if (isOwnerEnd(change)) {
      const rows = this.rows(change.table.name)
      const range = { start: [partition, change.owner], end: [partition, change.owner, LAST] }
      const owned = [...rows.getRange(range)].map(({ value }) => value)
      for (const removal of change.removalsOf(owned)) this.changeRow(partition, removal, totals)
      return
    }
    const { table, key, row } = change
    const rows = this.rows(table.name)
    if (row === 'remove') rows.removeSync(rowKey(partition, key))
    else if (row !== 'keep') rows.putSync(rowKey(partition, key), row.put)
    for (const entry of change.remove) this.removeEntry(partition, entry, totals)
    for (const entry of change.put) this.putEntry(partition, entry, totals)
    if (!change.removesContents) return
    for (const part of table.parts) {
      this.contents(table, part).removeSync([partition, key.key])
    }
  }

  private putEntry(partition: number, indexed: IndexedEntry, totals: TotalChanges): void {
    const { index, entry } = indexed
    if (index.kind === 'lookup') {
      const lookups = this.lookups(index)
      const text = String(entry.sort)
      // Ids are ordered by time. After a rebuild, an older row may be written last.
      if ((lookups.get(text) ?? '') < entry.key) lookups.putSync(text, entry.key)
      return
    }
    if (index.kind !== 'totals') {
      const key = entryKey(index, partition, entry)
      this.entries(index).putSync(key, entry.value)
      if (index.kind === 'queue') this.onQueued(index, key)
    }
    if (index.isTotalled) totals.add(indexed, 1)
  }

  private removeEntry(partition: number, indexed: IndexedEntry, totals: TotalChanges): void {
    const { index, entry } = indexed
    if (index.kind === 'lookup') return
    const isRemoved =
      index.kind === 'totals' || this.entries(index).removeSync(entryKey(index, partition, entry))
    if (index.isTotalled && isRemoved) totals.add(indexed, -1)
  }

  private addToTotals(partition: number, { index, group, count, sum }: TotalChange): void {
    const totals = this.totals(index)
    const key = [partition, textOf(group.slice(0, -1)), group.at(-1) ?? '']
    const before = totals.get(key) ?? { count: 0, sum: 0 }
    const after = { count: before.count + count, sum: before.sum + sum }
    if (after.count === 0) totals.removeSync(key)
    else totals.putSync(key, after)
  }

  putContents(partition: number, { table, key, parts }: Contents): void {
    for (const [part, bytes] of Object.entries(parts)) {
      const contents = this.contents(table, part)
      contents.putSync([partition, key.key], Buffer.from(bytes))
    }
  }

  /** If the process is killed midway, the progress row is gone, and the next process that begins clears the rest. */
  async clear({ topic, partition }: PartitionRange): Promise<void> {
    await commit(this.root, () => this.progresses.removeSync([topic, partition]))
    for (const { name } of TABLES.filter((table) => table.topic === topic).flatMap(databasesOf)) {
      const database = this.database<unknown, StoredKey>(name)
      // Keys of lookups are texts, which are in no range of partitions.
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

  /** Only this class writes into the database, so its values are of that type. */
  private database<Value, LmdbKey extends Key>(name: string): Database<Value, LmdbKey> {
    const database = this.databases.get(name)
    if (database === undefined) throw new Error(`the table or index ${name} is not declared in TABLES`)
    return database as unknown as Database<Value, LmdbKey>
  }
}
