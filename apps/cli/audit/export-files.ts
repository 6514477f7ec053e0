import { RECORDS_AT_ONCE } from '#libs/domain/audit/tiles.js'

/*
 * The files of an export beside those of C2SP tlog-tiles.
 */

/** The name of the log. */
export const ORIGIN_FILE = 'origin'
export const CHECKPOINT_FILE = 'checkpoint'
/** The folder of the checkpoints of earlier exports, by their sizes. */
export const CHECKPOINTS = 'checkpoints'
/** The folder of records. */
export const RECORDS = 'records'

/** The file with the records of the leaves from one index up to, not including, another: a line for each. */
export interface RecordsFile {
  path: string
  from: number
  to: number
}

export function recordsFile(from: number, to: number): RecordsFile {
  return { path: `${RECORDS}/${from}-${to}.ndjson`, from, to }
}

/** The files of records by the index of their first leaf, from the names in their folder. Others are left out. */
export function knownRecords(names: readonly string[]): ReadonlyMap<number, RecordsFile> {
  return new Map(
    names.flatMap((name) => {
      const [, from = NaN, to = NaN] = (/^(\d{1,15})-(\d{1,15})\.ndjson$/.exec(name) ?? []).map(Number)
      const file = recordsFile(from, to)
      const isKnown = file.path === `${RECORDS}/${name}` && from < to && to - from <= RECORDS_AT_ONCE
      return isKnown ? [[from, file] as const] : []
    }),
  )
}
