import type { Entry, IndexInfo, Range, RowKey, TableOf, ViewStore } from './view-store.js'

export interface ListQuery<ListedId> {
  order: 'asc' | 'desc'
  /** Only rows after this one, in the given order. */
  after: ListedId | null
  limit: number
}

/** The range of a whole list whose length is limited. */
export const ALL = { order: 'asc', after: null, limit: Infinity } as const

/** Offsets from `from` up to, not including, `to`. */
export interface OffsetQuery {
  order: 'asc' | 'desc'
  from: number
  to: number
  limit: number
}

/** Leases up to `limit` things until `leaseMs` from now. Each is leased by one process at a time. */
export interface LeaseQuery {
  now: Date
  leaseMs: number
  limit: number
}

/*
 * Ranges of an index, and pages of the rows that its entries lead to.
 */

/** The range of a list that is ordered by key. */
export function keyRange(
  partition: number,
  group: readonly string[],
  { order, after, limit }: ListQuery<string>,
): Range {
  const range = { partition, group, order, limit, from: null, to: null }
  if (after === null) return range
  return order === 'asc' ? { ...range, from: justAfter(after) } : { ...range, to: after }
}

/** Sorts after the key and before every other key: keys have no spaces, and `!` follows the space. */
function justAfter(key: string): string {
  return `${key}!`
}

export async function rowOf<Row>(
  store: Pick<ViewStore, 'rows'>,
  table: TableOf<Row>,
  key: RowKey,
): Promise<Row | null> {
  const [row = null] = await store.rows(table, [key])
  return row
}

const MAX_ROWS_AT_ONCE = 500

/**
 * A page of rows. Entries whose row has just been removed are skipped, and the page then has further rows instead.
 * Entries must have different sorts.
 */
export async function pageOfRows<Row>(
  store: ViewStore,
  index: IndexInfo,
  table: TableOf<Row>,
  range: Range,
): Promise<Row[]> {
  const rows: Row[] = []
  for (let rest = range; rows.length < range.limit;) {
    const limit = Math.min(range.limit - rows.length, MAX_ROWS_AT_ONCE)
    const [page = []] = await store.entriesWithRows(index, table, [{ ...rest, limit }])
    for (const { row } of page) if (row !== null) rows.push(row)
    const last = page.at(-1)?.entry
    if (last === undefined || page.length < limit) break
    rest = rangeAfter(rest, index, last)
  }
  return rows
}

function rangeAfter(range: Range, { sort }: IndexInfo, last: Entry): Range {
  if (range.order === 'desc') return { ...range, to: sort === 'none' ? last.key : last.sort }
  if (sort === 'none') return { ...range, from: justAfter(last.key) }
  return { ...range, from: typeof last.sort === 'number' ? last.sort + 1 : justAfter(last.sort) }
}
