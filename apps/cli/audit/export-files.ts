import { closeSync, constants, fstatSync, openSync, readFileSync, readSync } from 'node:fs'
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { readEntries, RECORDS_AT_ONCE, tileFile } from '#libs/domain/audit/tiles.js'
import { TILE_WIDTH } from '#libs/domain/audit/tree.js'
import { codeOf, messageOf } from '#libs/runtime/errors.js'

/*
 * The files of an export beside those of C2SP tlog-tiles. Their contents are read synchronously: an export has many small
 * files, nothing else runs meanwhile, and promises would take longer than reading.
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
/** How much of a file of records is read at once. */
const PIECE_BYTES = 128 * 1024
const LINE_FEED = 0x0a
/** Opening a pipe does not wait then. */
const READ_FLAGS = constants.O_RDONLY | constants.O_NONBLOCK
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
  read(path: string, maxBytes: number): Buffer | null {
    try {
      using file = openFile(join(this.folder, path))
      if (file.size > maxBytes) throw new Error(`it has more than ${maxBytes} bytes`)
      return readFileSync(file.descriptor)
    } catch (error) {
      this.report(path, codeOf(error) === 'ENOENT' ? 'it is missing' : messageOf(error))
      return null
    }
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

/** Throws if it is not a file. */
function openFile(path: string): Disposable & { descriptor: number; size: number } {
  const descriptor = openSync(path, READ_FLAGS)
  const opened = { descriptor, size: 0, [Symbol.dispose]: () => closeSync(descriptor) }
  try {
    const stats = fstatSync(descriptor)
    if (stats.isFile()) return { ...opened, size: stats.size }
    throw new Error('it is not a file')
  } catch (error) {
    closeSync(descriptor)
    throw error
  }
}

/** The leaves of a log of that size, up to the first bundle that is wrong. */
export function* leavesOf(files: ExportFiles, size: number): Generator<Buffer> {
  for (let from = 0; from < size; from += TILE_WIDTH) {
    const width = Math.min(size - from, TILE_WIDTH)
    const path = tileFile('entries', from / TILE_WIDTH, width)
    const bundle = files.read(path, MAX_BUNDLE_BYTES)
    const entries = bundle === null ? null : readEntries(bundle)
    if (entries?.length !== width) {
      files.report(path, `it does not have the ${width} leaves from ${from}: the rest is not read`)
      return
    }
    yield* entries
  }
}

/** A part of a line, since lines may be long. */
export interface LinePart {
  bytes: Buffer
  /** Whether the line ends with it. */
  isLast: boolean
}

/** The lines of a file of records, in parts. Throws if there is not one for each leaf. */
export function* linesOf(folder: string, { path, from, to }: RecordsFile): Generator<LinePart> {
  const wrong = () => new Error(`it does not have ${to - from} lines`)
  using file = openFile(join(folder, path))
  let lines = 0
  let isComplete = true
  for (;;) {
    const buffer = Buffer.allocUnsafe(PIECE_BYTES)
    const piece = buffer.subarray(0, readSync(file.descriptor, buffer))
    if (piece.length === 0) break
    for (let start = 0; start < piece.length;) {
      const end = piece.indexOf(LINE_FEED, start)
      isComplete = end !== -1
      if (isComplete) lines += 1
      if (lines > to - from) throw wrong()
      yield { bytes: piece.subarray(start, isComplete ? end : piece.length), isLast: isComplete }
      start = isComplete ? end + 1 : piece.length
    }
  }
  if (lines < to - from || !isComplete) throw wrong()
}
