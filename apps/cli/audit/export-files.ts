import { constants } from 'node:fs'
import { open, readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { readEntries, RECORDS_AT_ONCE, tileFile } from '#libs/domain/audit/tiles.js'
import { TILE_WIDTH } from '#libs/domain/audit/tree.js'
import { codeOf, messageOf } from '#libs/runtime/errors.js'

/*
 * The files of an export beside those of C2SP tlog-tiles.
 */

/** The name of the log. */
export const ORIGIN_FILE = 'origin'
export const CHECKPOINT_FILE = 'checkpoint'
/** The folder of the checkpoints of earlier exports, by their sizes. */
export const CHECKPOINTS = 'checkpoints'
/** A checkpoint with the signatures of many keys is shorter. */
export const MAX_NOTE_BYTES = 64 * 1024
/** The length of an entry has two bytes. */
const MAX_BUNDLE_BYTES = TILE_WIDTH * (2 + 65_535)
/** Opening a pipe does not wait then. */
export const READ_FLAGS = constants.O_RDONLY | constants.O_NONBLOCK
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

export type Report = (what: string, why: string) => void

/** The files of an export, which may be hostile. */
export class ExportFiles {
  constructor(
    readonly folder: string,
    readonly report: Report,
  ) {}

  /** Null if it is missing, too large or not a file, which is reported. */
  async read(path: string, maxBytes: number): Promise<Buffer | null> {
    const content = await readWhole(join(this.folder, path), maxBytes).catch((error: unknown) =>
      codeOf(error) === 'ENOENT' ? 'it is missing' : messageOf(error),
    )
    if (typeof content !== 'string') return content
    this.report(path, content)
    return null
  }

  /** The names in a folder, without unfinished files; none if it does not exist. */
  async names(path: string): Promise<string[]> {
    const names = await readdir(join(this.folder, path)).catch((error: unknown) => {
      if (codeOf(error) !== 'ENOENT') this.report(path, messageOf(error))
      return []
    })
    return names.filter((name) => !name.endsWith('.partial'))
  }
}

/** The bytes of a file, or why they are not read. */
async function readWhole(path: string, maxBytes: number): Promise<Buffer | string> {
  await using file = await open(path, READ_FLAGS)
  const stats = await file.stat()
  if (!stats.isFile()) return 'it is not a file'
  return stats.size > maxBytes ? `it has more than ${maxBytes} bytes` : await file.readFile()
}

/** The leaves of a log of that size, up to the first bundle that is wrong. */
export async function* leavesOf(files: ExportFiles, size: number): AsyncGenerator<Buffer> {
  for (let from = 0; from < size; from += TILE_WIDTH) {
    const width = Math.min(size - from, TILE_WIDTH)
    const path = tileFile('entries', from / TILE_WIDTH, width)
    const bundle = await files.read(path, MAX_BUNDLE_BYTES)
    const entries = bundle === null ? null : readEntries(bundle)
    if (entries?.length !== width) {
      files.report(path, `it does not have the ${width} leaves from ${from}: the rest is not read`)
      return
    }
    yield* entries
  }
}
