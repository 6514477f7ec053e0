import type { RootDatabase } from 'lmdb'
import { closeLmdbFile, commit, openLmdbStore } from '#libs/engines/embedded/lmdb-file/lmdb-file.js'
import type { LogReader, Partition } from '#libs/ports/event-log/event-log.js'
import { partitionOf } from '#libs/ports/event-log/topics.js'
import { type ReadModel, readModel } from '#libs/ports/read-model/queries.js'
import {
  isCatchingUp,
  ownerOf,
  sumOf,
  type Entry,
  type IndexInfo,
  type Progress,
  type Range,
  type RowKey,
  type TableOf,
  type ViewStore,
} from '#libs/ports/read-model/view-store.js'
import { VIEWS_FORM } from '#libs/ports/read-model/views-form.js'
import { boundsOf, entryKey, entryOf, LAST, rowKey, textOf, type StoredKey } from './lmdb-keys.js'
import { LmdbLeases } from './lmdb-leases.js'
import { LmdbTables } from './lmdb-tables.js'

const OWNERS_PER_PAGE = 100
const KEYS_PER_CHUNK = 500

export interface LmdbReadModel extends ReadModel {
  close(): Promise<void>
}

/**
 * Opens the views of a log with this number of partitions. Rejects if the file at `path` can't be opened or was changed
 * by anything else, or if its list of tables can't be read; with `keepsForm` also if it has views of another form, which
 * are emptied otherwise.
 */
export function openLmdbReadModel(
  path: string,
  partitions: number,
  { keepsForm = false, log = null }: { keepsForm?: boolean; log?: LogReader | null } = {},
): Promise<LmdbReadModel> {
  // `maxDbs` is for the databases of two forms.
  const file = { path, syncMode: 'after-visible', maxDbs: 80, isDerived: true } as const
  return openLmdbStore(file, (root: RootDatabase<unknown, string>) => {
    if (keepsForm && root.openDB<string, string>({ name: 'meta' }).get('form') !== VIEWS_FORM) {
      throw new Error(`${path} has the views of another version of Mayfly`)
    }
    // In one transaction: a new file would be written once for each table.
    const store = root.transactionSync(() => lmdbViewStore(root, partitions, log))
    return { ...readModel(store), close: () => closeLmdbFile(root) }
  })
}

/**
 * The views in an LMDB file. Relies on lmdb 3 with commits that are visible at once and synced to disk soon after. A crash
 * of the machine restores the last synced commit: views may lose their last steps, but stay consistent. Reads are
 * synchronous, although the port is not.
 *
 * Empties the file if it has views of another form. Must be called in a transaction.
 */
function lmdbViewStore(
  root: RootDatabase<unknown, string>,
  partitions: number,
  log: LogReader | null,
): ViewStore {
  const leases = new LmdbLeases()
  const tables = new LmdbTables(root, VIEWS_FORM, (queue, key) => leases.forget(queue, key))
  const everyPartition = Array.from({ length: partitions }, (_, partition) => partition)

  return {
    partitions,
    log,

    progress: (partition) => Promise.resolve(progressOf(partition)),

    async begin(logId, range, aheadAt) {
      const { topic, partition, first, end } = range
      // In one transaction, so that a step applied at the same time is not undone.
      const found = await commit(root, () => {
        const row = tables.progresses.get([topic, partition])
        if (row?.logId !== logId) return null
        if (row.position > end) return row.position === aheadAt ? null : { aheadAt: row.position }
        // Records that the log no longer has can't be applied: the views continue from its first record.
        const position = Math.max(row.position, first)
        const begunAtMs = Math.max(Date.now(), row.begunAtMs + 1)
        tables.progresses.putSync([topic, partition], { logId, position, target: end, begunAtMs })
        return position
      })
      if (found !== null) return found
      await tables.clear(range)
      const created = { logId, position: first, target: end, begunAtMs: Date.now() }
      await commit(root, () => tables.progresses.putSync([topic, partition], created))
      return first
    },

    apply: ({ topic, partition, from, to, changes, contents }) =>
      commit(root, () => {
        const row = tables.progresses.get([topic, partition])
        if (row === undefined) return 'absent'
        if (row.position !== from) return { position: row.position }
        for (const each of contents) tables.putContents(partition, each)
        tables.change(partition, changes)
        tables.progresses.putSync([topic, partition], { ...row, position: to })
        return 'applied'
      }),

    write: ({ partition }, changes) =>
      commit(root, () => {
        tables.change(partition, changes)
      }),

    rows: (table, keys) => Promise.resolve(keys.map((key) => rowOf(table, partitionOfRow(table, key), key))),

    // eslint-disable-next-line @typescript-eslint/require-await
    async *keysOf({ name }) {
      let start: StoredKey = [0]
      for (;;) {
        // A read must not stay open during writes.
        const range = { start, end: [Infinity], limit: KEYS_PER_CHUNK, exclusiveStart: true }
        const keys = [...tables.rows(name).getKeys(range)]
        const last = keys.at(-1)
        if (last === undefined) return
        yield keys.map((key) => String(key.at(-1)))
        start = last
      }
    },

    content: (table, key, part) =>
      Promise.resolve(tables.contents(table, part).get([partitionOfRow(table, key), key.key]) ?? null),

    entries: (index, ranges) => Promise.resolve(ranges.map((range) => entriesIn(index, range))),

    entriesWithRows: (index, table, ranges) =>
      Promise.resolve(
        ranges.map((range) => entriesIn(index, range).map((entry) => withRow(table, range, entry))),
      ),

    size(index) {
      // LMDB maintains the statistics of a database, so no entries are read.
      const { entryCount } = tables.entries(index).getStats() as { entryCount: number }
      return Promise.resolve(entryCount)
    },

    totals(index, group, lasts) {
      const [totals, text] = [tables.totals(index), textOf(group)]
      const ofLast = (last: string) =>
        sumOf(everyPartition.flatMap((partition) => totals.get([partition, text, last]) ?? []))
      return Promise.resolve(lasts.map(ofLast))
    },

    async lookup(index, text, isValid) {
      const key = tables.lookups(index).get(text)
      return key !== undefined && (await isValid(key)) ? key : null
    },

    due(queue, nowMs, limit) {
      const found: { partition: number; entry: Entry }[] = []
      for (const partition of everyPartition) {
        const range = { start: [partition], end: [partition, textOf([]), nowMs + 1] }
        let count = 0
        for (const { key, value } of tables.entries(queue).getRange(range)) {
          if (leases.isLeased(queue, key, nowMs)) continue
          found.push({ partition, entry: entryOf(queue, [], key, value) })
          count += 1
          if (count >= limit) break
        }
      }
      return Promise.resolve(found)
    },

    claim(queue, table, claim) {
      const { partition, group, nowMs, limit } = claim
      if (limit === 0 || mustWait(queue, partition)) return Promise.resolve([])
      const start = [partition, textOf(group)]
      const entries = tables.entries(queue)
      const keysFrom = (from: StoredKey) => entries.getKeys({ start: from, end: [...start, nowMs + 1] })
      const claimed = leases
        .claim(queue, start, keysFrom, claim)
        .map((key) => entryOf(queue, group, key, entries.get(key) ?? ''))
      return Promise.resolve(claimed.map((entry) => withRow(table, claim, entry)))
    },

    release(queue, partition, entry, untilMs) {
      const key = entryKey(queue, partition, entry)
      if (tables.entries(queue).doesExist(key)) leases.release(queue, key, untilMs)
      return Promise.resolve()
    },

    // eslint-disable-next-line @typescript-eslint/require-await
    async *dueOwners(queue, nowMs) {
      let page: string[] = []
      for (const partition of everyPartition) {
        if (mustWait(queue, partition)) continue
        for (const { owner, dueAtMs } of ownersIn(queue, partition)) {
          if (dueAtMs <= nowMs) page.push(owner)
          if (page.length < OWNERS_PER_PAGE) continue
          yield page
          page = []
        }
      }
      yield page
    },

    earliestDueMs(queue) {
      const owners = everyPartition.flatMap((partition) => [...ownersIn(queue, partition)])
      const earliest = owners.reduce((least, { dueAtMs }) => Math.min(least, dueAtMs), Infinity)
      return Promise.resolve(earliest === Infinity ? null : earliest)
    },
  }

  /** The owners with entries in a queue, and when the first entry of each is due. */
  function* ownersIn(queue: IndexInfo, partition: number): Generator<{ owner: string; dueAtMs: number }> {
    let start: StoredKey = [partition]
    for (;;) {
      const [key] = tables.entries(queue).getKeys({ start, end: [partition, LAST], limit: 1 })
      if (key === undefined) return
      const [, owner, dueAtMs] = key
      yield { owner: String(owner), dueAtMs: Number(dueAtMs) }
      start = [partition, String(owner), LAST]
    }
  }

  function mustWait({ needsCompleteViews, topic }: IndexInfo, partition: number): boolean {
    return needsCompleteViews && isCatchingUp(progressOf({ topic, partition }))
  }

  function progressOf({ topic, partition }: Partition): Progress | null {
    const row = tables.progresses.get([topic, partition])
    return row === undefined ? null : { topic, partition, ...row }
  }

  function entriesIn(index: IndexInfo, range: Range): Entry[] {
    if (range.limit === 0) return []
    const found = tables.entries(index).getRange(boundsOf(range))
    return [...found].map(({ key, value }) => entryOf(index, range.group, key, value))
  }

  function withRow<Row>(
    table: TableOf<Row> | null,
    { partition, group }: Pick<Range, 'partition' | 'group'>,
    entry: Entry,
  ): { entry: Entry; row: Row | null } {
    if (table === null) return { entry, row: null }
    return { entry, row: rowOf(table, partition, { owner: ownerOf(table, group), key: entry.key }) }
  }

  function rowOf<Row>({ name }: TableOf<Row>, partition: number, key: RowKey): Row | null {
    return (tables.rows(name).get(rowKey(partition, key)) ?? null) as Row | null
  }

  function partitionOfRow({ topic }: TableOf<unknown>, { owner, key }: RowKey): number {
    return topic === 'account-events' ? 0 : partitionOf(owner ?? key, partitions)
  }
}
