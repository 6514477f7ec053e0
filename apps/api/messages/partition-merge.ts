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

/** A partition in the merge. */
interface Source<Entry> {
  partition: number
  /** Entries that have been read and not been taken. */
  next: Entry[]
  /** The range that has not been read. */
  from: number
  to: number
  limit: number
}

/**
 * The entries of all partitions. Those of one partition, and so those of one inbox, are in the order of the log; the
 * partitions are merged by the time of their next entry. They are read only as far as they are taken: `read` resolves
 * with fewer entries than its limit only if the range has no more.
 */
export async function* mergePartitions<Entry extends { offset: number; time: Date }>(
  { order, from, to }: PartitionRanges,
  read: (range: PartitionRead) => Promise<Entry[]>,
): AsyncGenerator<Entry & { partition: number }> {
  const sources = from.map((first, partition): Source<Entry> => {
    return { partition, next: [], from: first, to: to[partition] ?? first, limit: FIRST_READ }
  })
  const fill = async (source: Source<Entry>) => {
    const { partition, from, to, limit } = source
    if (from >= to) return
    source.next = await read({ partition, order, from, to, limit })
    source.limit = Math.min(2 * limit, MAX_READ)
    const last = source.next.at(-1)
    if (last === undefined || source.next.length < limit) source.from = to
    else if (order === 'asc') source.from = last.offset + 1
    else source.to = last.offset
  }
  await Promise.all(sources.map(fill))
  for (;;) {
    const source = firstOf(sources, order)
    const entry = source?.next.shift()
    if (source === null || entry === undefined) return
    yield { ...entry, partition: source.partition }
    if (source.next.length === 0) await fill(source)
  }
}

/** The source whose next entry comes first; null if none has one. */
function firstOf<Entry extends { time: Date }>(
  sources: readonly Source<Entry>[],
  order: PartitionRanges['order'],
): Source<Entry> | null {
  let first: { source: Source<Entry>; time: Date } | null = null
  for (const source of sources) {
    const time = source.next[0]?.time
    if (time === undefined) continue
    const isEarlier = first === null || (order === 'asc' ? time < first.time : time > first.time)
    if (isEarlier) first = { source, time }
  }
  return first?.source ?? null
}
