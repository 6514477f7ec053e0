import type { LogReader, Position, StoredRecord } from '#libs/ports/event-log/event-log.js'

/**
 * The records at these positions, in the same order; null for each that the log no longer has. Records between two of a
 * partition are read over, unless they are more than `maxBetween`. They may be large.
 */
export async function* recordsAt(
  log: LogReader,
  positions: readonly Position[],
  maxBetween: number,
): AsyncGenerator<StoredRecord | null, void> {
  for (const run of runsOf(positions, maxBetween)) {
    const wanted = run.values()
    let next = wanted.next()
    const [{ topic, partition, offset: first }] = run
    const end = run.reduce((last, { offset }) => Math.max(last, offset), first) + 1
    for await (const records of log.read({ topic, partition, first, end })) {
      for (const record of records) {
        for (; next.done !== true && next.value.offset < record.offset; next = wanted.next()) yield null
        if (next.done === true || next.value.offset > record.offset) continue
        yield record
        next = wanted.next()
      }
    }
    for (; next.done !== true; next = wanted.next()) yield null
  }
}

type Run = [Position, ...Position[]]

/** Consecutive positions of one partition that are read at once, with increasing offsets. */
function runsOf(positions: readonly Position[], maxBetween: number): Run[] {
  const runs: Run[] = []
  for (const position of positions) {
    const run = runs.at(-1)
    const last = run?.at(-1)
    const gap = last === undefined ? 0 : position.offset - last.offset
    const isNext = last?.topic === position.topic && last.partition === position.partition
    if (run !== undefined && isNext && gap > 0 && gap <= maxBetween + 1) run.push(position)
    else runs.push([position])
  }
  return runs
}
