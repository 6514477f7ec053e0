import type { Entry, IndexInfo, Range, RowKey } from '#libs/ports/read-model/view-store.js'

/*
 * The keys of the views in LMDB. Each begins with the partition, so that a partition is one range of each database.
 */

export type StoredKey = (string | number)[]

/** Sorts after all numbers and after all ids and texts. */
export const LAST = '\uffff'

/** A group as one element of a key. Ids are never the text of several elements, which begins with a bracket. */
export function textOf(group: readonly string[]): string {
  const [only] = group
  return group.length === 1 && only !== undefined ? only : JSON.stringify(group)
}

export function rowKey(partition: number, { owner, key }: RowKey): StoredKey {
  return owner === null ? [partition, key] : [partition, owner, key]
}

export function entryKey({ kind, sort }: IndexInfo, partition: number, entry: Entry): StoredKey {
  const start = [partition, textOf(entry.group)]
  if (kind === 'queue') return [...start, entry.dueAtMs, entry.sort, entry.key]
  return sort === 'none' ? [...start, entry.key] : [...start, entry.sort, entry.key]
}

export function entryOf(
  { kind, sort }: IndexInfo,
  group: readonly string[],
  key: StoredKey,
  value: string,
): Entry {
  const [, , first = '', second = '', third = ''] = key
  if (kind === 'queue') {
    return { group, dueAtMs: Number(first), sort: second, key: String(third), value }
  }
  return sort === 'none'
    ? { group, sort: '', key: String(first), value, dueAtMs: 0 }
    : { group, sort: first, key: String(second), value, dueAtMs: 0 }
}

/** LMDB's ranges include their start and not their end, in the order of reading. */
export function boundsOf({ partition, group, from, to, order, limit }: Range) {
  const start = [partition, textOf(group)]
  const low = from === null ? start : [...start, from]
  const high = [...start, to ?? LAST]
  return order === 'asc'
    ? { start: low, end: high, limit }
    : { start: high, end: low, limit, reverse: true, exclusiveStart: true }
}
