/*
 * The files of an export beside those of C2SP tlog-tiles.
 */

export const ORIGIN_FILE = 'origin'
export const RECORDS_AT_ONCE = 256

export function checkpointFile(size: number): string {
  return `checkpoints/${size}`
}

/** The records of the leaves from one index up to, not including, another. */
export function recordsFile(from: number, to: number): string {
  return `records/${from}-${to}.ndjson`
}

/** The leaves of a file of records, by its name; null for another file. */
export function recordsRange(name: string): { from: number; to: number } | null {
  const [, from, to] = /^(\d{1,15})-(\d{1,15})\.ndjson$/.exec(name) ?? []
  return from === undefined || to === undefined ? null : { from: Number(from), to: Number(to) }
}
