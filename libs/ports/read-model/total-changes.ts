import type { IndexedEntry, IndexInfo, Totals } from './view-store.js'

/** What entries of one partition add to the total of a group. */
export interface TotalChange extends Totals {
  index: IndexInfo
  group: readonly string[]
}

/** Sums what changes of entries add to totals, so that a store writes each total once. */
export class TotalChanges {
  private readonly changes = new Map<string, TotalChange>()

  add({ index, entry: { group, sort } }: IndexedEntry, sign: 1 | -1): void {
    const name = [index.name, ...group].join('\0')
    const { count, sum } = this.changes.get(name) ?? { count: 0, sum: 0 }
    this.changes.set(name, { index, group, count: count + sign, sum: sum + sign * Number(sort) })
  }

  /** Those that change a total. */
  all(): TotalChange[] {
    return [...this.changes.values()].filter(({ count, sum }) => count !== 0 || sum !== 0)
  }
}
