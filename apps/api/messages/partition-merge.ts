import type { OffsetQuery } from '#libs/ports/read-model/lists.js'

/** A range of a list in every partition of inbox-events: offsets from inclusive, to exclusive, by partition. */
export interface PartitionRanges {
  order: 'asc' | 'desc'
  from: readonly number[]
  to: readonly number[]
}

/** One read of a partition. */
export interface PartitionRead extends OffsetQuery {
  partition: number
}

/** Entries of each partition that are read at first, and at most at once later. */
const FIRST_READ = 8
const MAX_READ = 256

/**
 * The entries of all partitions. Those of one partition, and so those of one inbox, are in the order of the log; the
 * partitions are merged by the time of their next entry. They are read only as far as they are taken: `read` resolves
 * with fewer entries than its limit only if the range has no more.
 */
export async function* mergePartitions<Entry extends { offset: number; time: Date }>(
  { order, from, to }: PartitionRanges,
  read: (range: PartitionRead) => Promise<Entry[]>,
): AsyncGenerator<Entry & { partition: number }> {
  const first = await Promise.all(
    from.map(async (start, partition) => {
      const entries = entriesOf({ partition, order, from: start, to: to[partition] ?? start }, read)
      return { partition, entries, next: await entries.next() }
    }),
  )
  const sources = first.flatMap(({ next, ...source }) =>
    next.done === true ? [] : { ...source, entry: next.value },
  )
  while (sources.length > 0) {
    const earliest = sources.reduce((one, other) => {
      const isEarlier =
        order === 'asc' ? other.entry.time < one.entry.time : other.entry.time > one.entry.time
      return isEarlier ? other : one
    })
    yield { ...earliest.entry, partition: earliest.partition }
    const next = await earliest.entries.next()
    if (next.done === true) sources.splice(sources.indexOf(earliest), 1)
    else earliest.entry = next.value
  }
}

/** The entries of a range of one partition, read as they are taken. */
export async function* entriesOf<Range extends Omit<OffsetQuery, 'limit'>, Entry extends { offset: number }>(
  range: Range,
  read: (range: Range & { limit: number }) => Promise<Entry[]>,
  firstRead = FIRST_READ,
): AsyncGenerator<Entry, void> {
  let { from, to } = range
  for (let limit = firstRead; from < to; limit = Math.min(2 * limit, MAX_READ)) {
    const entries = await read({ ...range, from, to, limit })
    yield* entries
    const last = entries.at(-1)
    if (last === undefined || entries.length < limit) return
    if (range.order === 'asc') from = last.offset + 1
    else to = last.offset
  }
}
