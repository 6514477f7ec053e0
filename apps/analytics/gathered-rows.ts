import type { EncodedRows } from '#libs/ports/usage/usage-rows.js'
import type { UsageRange } from '#libs/ports/usage/usage-store.js'

interface Gathered extends UsageRange {
  rows: EncodedRows[]
}

/** Rows that wait to be written, of ranges without a gap, by partition. */
export class GatheredRows {
  private readonly partitions = new Map<number, Gathered>()
  /** Since when the oldest of them waits, on the clock of `performance.now()`; null if none does. */
  sinceMs: number | null = null
  count = 0

  /** Adds what follows on what is gathered of the partition. */
  add({ partition, first, end }: UsageRange, rows: readonly EncodedRows[]): void {
    const before = this.partitions.get(partition)
    if (before === undefined) this.partitions.set(partition, { partition, first, end, rows: [...rows] })
    else if (before.end !== first) throw new RangeError(`${first} does not follow on ${before.end}`)
    else {
      before.end = end
      before.rows.push(...rows)
    }
    this.sinceMs ??= performance.now()
    this.count += countOf(rows)
  }

  drop(partition: number): void {
    this.count -= countOf(this.partitions.get(partition)?.rows ?? [])
    this.partitions.delete(partition)
    if (this.partitions.size === 0) this.sinceMs = null
  }

  /** Takes out what has waited, of so many partitions at most; in the order of partitions, the same for the same. */
  take(mostPartitions: number): { ranges: UsageRange[]; rows: EncodedRows[] } {
    const taken = [...this.partitions.values()].slice(0, mostPartitions)
    for (const { partition } of taken) this.drop(partition)
    return {
      ranges: taken.map(({ partition, first, end }) => ({ partition, first, end })),
      rows: taken.flatMap(({ rows }) => rows),
    }
  }
}

export function countOf(rows: readonly EncodedRows[]): number {
  return rows.reduce((sum, { count }) => sum + count, 0)
}
