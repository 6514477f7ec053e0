import type { Entry, IndexedEntry, IndexInfo, OwnerEnd, RowChange, RowKey, TableOf } from './view-store.js'

/*
 * How tables and indexes are declared, and what follows from a declaration when a row changes.
 */

/** An index of a table: its entries are a pure function of the table's subject, a row with what else decides. */
export interface Index<Subject> extends IndexInfo {
  entriesOf(subject: Subject): Entry[]
}

export interface Table<Subject, Row> extends TableOf<Row> {
  keyOf(subject: Subject): RowKey
  /** Null for a table that has only index entries. */
  rowOf(subject: Subject): Row | null
  hasContents(subject: Subject): boolean
  readonly indexes: readonly Index<Subject>[]
}

type EntryFields = Partial<Entry> & Pick<Entry, 'key'>

type IndexDeclaration<Subject> = Pick<IndexInfo, 'name' | 'topic'> &
  Partial<Omit<IndexInfo, 'name' | 'topic'>> & { entriesOf: (subject: Subject) => readonly EntryFields[] }

export function index<Subject>({ entriesOf, ...declared }: IndexDeclaration<Subject>): Index<Subject> {
  const defaults = { kind: 'list', sort: 'none', isOwned: false, isTotalled: false, isKept: false } as const
  return {
    ...{ ...defaults, needsCompleteViews: false, ...declared },
    entriesOf: (subject) =>
      entriesOf(subject).map((fields) => ({ group: [], sort: '', value: '', dueAtMs: 0, ...fields })),
  }
}

type TableDeclaration<Subject, Row> = Pick<Table<Subject, Row>, 'name' | 'topic' | 'keyOf' | 'rowOf'> &
  Partial<Table<Subject, Row>>

export function table<Subject, Row>(declared: TableDeclaration<Subject, Row>): Table<Subject, Row> {
  return { ownedBy: null, parts: [], hasContents: () => false, indexes: [], ...declared }
}

/** Stores a row. `previous` is the subject that is stored now; null if there is none. */
export function put<Subject>(
  stored: Table<Subject, unknown>,
  subject: Subject,
  previous: Subject | null,
): RowChange {
  const row = stored.rowOf(subject)
  const before = previous === null ? [] : entriesOf(stored, previous)
  const after = entriesOf(stored, subject)
  return {
    table: stored,
    key: stored.keyOf(subject),
    row: row === null ? 'keep' : { put: row },
    remove: without(before, after).filter(({ index: { isKept } }) => !isKept),
    put: without(after, before),
    removesContents: stored.parts.length > 0 && !stored.hasContents(subject),
  }
}

export function remove<Subject>(stored: Table<Subject, unknown>, subject: Subject): RowChange {
  return {
    ...{ table: stored, key: stored.keyOf(subject), row: 'remove', put: [] },
    remove: entriesOf(stored, subject),
    removesContents: stored.parts.length > 0,
  }
}

/** Removes all rows of an owner. `subjectOf` completes a row. */
export function removeOwned<Subject, Row>(
  stored: Table<Subject, Row>,
  owner: string,
  subjectOf: (row: Row) => Subject,
): OwnerEnd {
  return {
    table: stored,
    indexes: stored.indexes,
    owner,
    // The store passes rows of this table only.
    removalsOf: (rows) => rows.map((row) => remove(stored, subjectOf(row as Row))),
  }
}

function entriesOf<Subject>({ indexes }: Table<Subject, unknown>, subject: Subject): IndexedEntry[] {
  return indexes.flatMap((each) => each.entriesOf(subject).map((entry) => ({ index: each, entry })))
}

function without(entries: readonly IndexedEntry[], others: readonly IndexedEntry[]): readonly IndexedEntry[] {
  return entries.filter((entry, at) => {
    // An entry that stays is mostly at the same place in both lists, which may be long.
    const place = others[at]
    return !(place && isSame(entry, place)) && !others.some((other) => isSame(entry, other))
  })
}

/** Each mail compares dozens of entries. */
function isSame(one: IndexedEntry, other: IndexedEntry): boolean {
  const [entry, place] = [one.entry, other.entry]
  return (
    one.index === other.index &&
    entry.sort === place.sort &&
    entry.key === place.key &&
    entry.value === place.value &&
    entry.dueAtMs === place.dueAtMs &&
    entry.group.length === place.group.length &&
    entry.group.every((name, at) => name === place.group[at])
  )
}
