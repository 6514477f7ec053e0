import type { LogLayout, LogReader, Partition, PartitionRange } from '#libs/ports/event-log/event-log.js'
import { findRange } from '#libs/ports/event-log/event-log.js'
import type { ViewedTopic } from '#libs/ports/event-log/topics.js'
import { UnavailableError } from '#libs/runtime/errors.js'

/*
 * The store of the views: tables of rows, and indexes whose entries lead to rows. It knows nothing of inboxes or
 * webhooks. What is stored is declared in `tables.ts`, and every query is written once, above the store.
 *
 * All data belongs to a partition of a topic, and is removed with it. The partition of a row follows from its owner or
 * its key, as that of a record on the log does.
 */

/**
 * The views are unavailable. All methods reject with it, without a long wait. A change may have been made nevertheless.
 */
export class ReadModelUnavailableError extends UnavailableError {}

/** What a store knows of a table. `Row` is the type of its rows. */
export interface TableOf<Row> {
  readonly name: string
  readonly topic: ViewedTopic
  /** The table whose row owns the rows of this one; they are stored together. Null if they have no owner. */
  readonly ownedBy: string | null
  /** The names of contents, which are stored beside each row. */
  readonly parts: readonly string[]
  readonly rowType?: Row
}

/** What a store knows of an index. */
export interface IndexInfo {
  readonly name: string
  readonly topic: ViewedTopic
  /**
   * `list`: entries are read in order, by group. `queue`: entries are claimed when they are due. `lookup`: the key of the
   * one entry with a text, found without knowing its partition. `totals`: only the totals of entries are stored.
   */
  readonly kind: 'list' | 'queue' | 'lookup' | 'totals'
  /** What the entries of a group are ordered by before their keys. Text has no spaces. */
  readonly sort: 'number' | 'text' | 'none'
  /** Whether the first element of each group is the owner of the row, with which the entries are stored. */
  readonly isOwned: boolean
  /** Whether the number of entries in each group, and the sum of their numbers, is kept. */
  readonly isTotalled: boolean
  /** Whether entries stay when their row changes. They are removed only with the partition. */
  readonly isKept: boolean
  /** For a queue: whether nothing can be claimed while the partition's views are catching up. */
  readonly needsCompleteViews: boolean
}

/** An entry of an index. Entries of a group have different keys or different sorts. */
export interface Entry {
  /** No list of strings that begins with it is the group of another entry. */
  group: readonly string[]
  /** A whole number from 0, or text; an empty text if the index has no sort. */
  sort: number | string
  /** The key of the row that the entry leads to. */
  key: string
  value: string
  /** For a queue: when the entry is due, in milliseconds since 1970. */
  dueAtMs: number
}

export interface RowKey {
  owner: string | null
  key: string
}

/** The owner of the row that an entry of this group leads to; null if the table's rows have none. */
export function ownerOf({ ownedBy }: TableOf<unknown>, group: readonly string[]): string | null {
  return ownedBy === null ? null : (group[0] ?? null)
}

export interface IndexedEntry {
  index: IndexInfo
  entry: Entry
}

/** Puts or removes one row, with its index entries. Removals are made first. */
export interface RowChange {
  table: TableOf<unknown>
  key: RowKey
  /** `keep` for a table that has only index entries. */
  row: { put: unknown } | 'remove' | 'keep'
  remove: readonly IndexedEntry[]
  put: readonly IndexedEntry[]
  removesContents: boolean
}

/** Removes every row that an owner has in a table, with index entries and contents. */
export interface OwnerEnd {
  table: TableOf<unknown>
  indexes: readonly IndexInfo[]
  owner: string
  /** What removing these rows removes. */
  removalsOf: (rows: readonly unknown[]) => RowChange[]
}

export type Change = RowChange | OwnerEnd

export function isOwnerEnd(change: Change): change is OwnerEnd {
  return 'owner' in change
}

/** Large values beside a row, one for each of the table's parts. */
export interface Contents {
  table: TableOf<unknown>
  key: RowKey
  parts: Readonly<Record<string, Uint8Array>>
  /** The store may delete them from then on. */
  expiresAt: Date
}

/** Advances a partition's views from one offset to another, with all changes of the records in between. */
export interface Step extends Partition {
  from: number
  to: number
  changes: readonly Change[]
  contents: readonly Contents[]
}

/** `absent`: the partition's views were never begun, or are lost. `position`: the views are at this other offset. */
export type StepOutcome = 'applied' | 'absent' | { position: number }

/** How far a partition's views have advanced. */
export interface Progress extends Partition {
  /** The log that they were computed from. */
  logId: string
  /** The offset of the next record to apply. */
  position: number
  /** Until the views reach this offset they are catching up: something that they don't show may exist. */
  target: number
  /** When the target was set, in milliseconds since 1970 by the store's clock; later each time. */
  begunAtMs: number
}

export interface ViewProgress {
  /** Null for a partition that no projector has begun. */
  progress(partition: Partition): Promise<Progress | null>
}

/** Whether a partition's views are catching up. Pass null for views that were never begun. */
export function isCatchingUp(progress: Progress | null): boolean {
  return progress === null || progress.position < progress.target
}

/** A part of a group's entries. */
export interface Range {
  partition: number
  group: readonly string[]
  /** The first sort, and the sort after the last one; null for no bound. Without a sort, keys are compared. */
  from: number | string | null
  to: number | string | null
  order: 'asc' | 'desc'
  limit: number
}

export interface Totals {
  count: number
  sum: number
}

export function sumOf(totals: readonly Totals[]): Totals {
  return {
    count: totals.reduce((all, { count }) => all + count, 0),
    sum: totals.reduce((all, { sum }) => all + sum, 0),
  }
}

export interface Claim {
  partition: number
  group: readonly string[]
  nowMs: number
  /** When the lease ends. */
  untilMs: number
  limit: number
}

/** One engine's store of the views. Every method needs one round trip, if nothing else is said. */
export interface ViewStore extends ViewProgress {
  /** The number of partitions of each viewed topic but account-events. */
  readonly partitions: number
  /** The log, if single records of it can be read fast: contents that it has are not stored then. Otherwise null. */
  readonly log: LogReader | null
  /**
   * Makes a partition's views ready to follow a log and resolves with the offset to continue from. Views of another log,
   * or of another form, are emptied first and rebuilt from the log's first record. They are catching up until they reach
   * the range's end. Needs many round trips if views are emptied.
   *
   * Views past the range's end are not changed, and their offset is returned as `aheadAt`: records may have been appended
   * since the range was read. If the views are still past the end of a newer range and at the given `aheadAt`, the log
   * was truncated, and they are emptied. `beginViews` handles this.
   */
  begin(logId: string, range: PartitionRange, aheadAt?: number): Promise<number | { aheadAt: number }>
  /**
   * Compare and set: applies changes, contents and the new offset atomically if the partition's views are at `from`;
   * otherwise nothing. Resolves once queries see them. Needs several round trips.
   */
  apply(step: Step): Promise<StepOutcome>
  /** Makes changes that follow from no record, in one partition. Idempotent if the changes are. */
  write(partition: Partition, changes: readonly RowChange[]): Promise<void>

  rows<Row>(table: TableOf<Row>, keys: readonly RowKey[]): Promise<(Row | null)[]>
  /** The keys of all rows of a table without an owner, in chunks. A key may be yielded twice. */
  keysOf(table: TableOf<unknown>): AsyncIterable<readonly string[]>
  content(table: TableOf<unknown>, key: RowKey, part: string): Promise<Uint8Array | null>

  entries(index: IndexInfo, ranges: readonly Range[]): Promise<Entry[][]>
  /** The entries of each range with the rows that they lead to; null for a row that has just been removed. */
  entriesWithRows<Row>(
    index: IndexInfo,
    table: TableOf<Row>,
    ranges: readonly Range[],
  ): Promise<{ entry: Entry; row: Row | null }[][]>
  size(index: IndexInfo): Promise<number>
  /** The totals, over all partitions, of groups that differ in their last element, in the order of `lasts`. */
  totals(index: IndexInfo, group: readonly string[], lasts: readonly string[]): Promise<Totals[]>
  /** The key of a text for which `isValid`, called last with that key, has resolved with true; null if there is none. */
  lookup(index: IndexInfo, text: string, isValid: (key: string) => Promise<boolean>): Promise<string | null>

  /** Entries that can be claimed, in each partition the earliest ones. */
  due(queue: IndexInfo, nowMs: number, limit: number): Promise<{ partition: number; entry: Entry }[]>
  /**
   * Leases entries of a group that are due and not leased, earliest first, and resolves with the rows of the table that
   * they lead to. An entry that is put again is no longer leased.
   */
  claim<Row>(
    queue: IndexInfo,
    table: TableOf<Row> | null,
    claim: Claim,
  ): Promise<{ entry: Entry; row: Row | null }[]>
  /** Changes when the lease of an entry ends. Does nothing if it was removed. */
  release(queue: IndexInfo, partition: number, entry: Entry, untilMs: number): Promise<void>
  /** For a queue with owners: those that may have entries to claim, in pages. An owner may occur twice. */
  dueOwners(queue: IndexInfo, nowMs: number): AsyncIterable<readonly string[]>
  /** For a queue with owners: no entry is due before; null if there is no entry. */
  earliestDueMs(queue: IndexInfo): Promise<number | null>
}

/** Makes a partition's views ready to follow the log; resolves with its range and the offset to continue from. */
export async function beginViews(
  store: Pick<ViewStore, 'begin'>,
  log: LogLayout,
  partition: Partition,
): Promise<{ range: PartitionRange; offset: number }> {
  let aheadAt: number | undefined
  for (;;) {
    const { logId, range } = await findRange(log, partition)
    const begun = await store.begin(logId, range, aheadAt)
    if (typeof begun === 'number') return { range, offset: begun }
    aheadAt = begun.aheadAt
  }
}
