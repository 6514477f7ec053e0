import { closeSync, existsSync, fstatSync, openSync, readSync } from 'node:fs'
import { open, type Key, type RootDatabase } from 'lmdb'
import { statfs } from 'node:fs/promises'
import { LogUnavailableError } from '#libs/ports/event-log/event-log.js'

/*
 * How Mayfly opens LMDB and writes to it. Relies on lmdb 3.5: a failed commit (a full disk) rejects each
 * transaction with an Error whose `commitError` is a promise that rejects with the cause, and, with
 * `eventTurnBatching`, one more promise that nobody is given. Node ends a process for a rejection that nobody
 * handles, so the batching is off and `commit` handles the cause.
 */

export interface LmdbFileOptions {
  path: string
  /** The most named databases in the file. */
  maxDbs?: number
  /** `before-visible`: a commit is synced to disk before it is visible. `after-visible`: it is synced soon after. */
  syncMode: 'before-visible' | 'after-visible'
}

/**
 * Address space for the memory map, many times what a file may come to: one that grows past its map is mapped anew, and
 * the pages of the old map stay resident beside those of the new one. On Linux it takes neither memory nor disk.
 */
const MAP_BYTES = 256 * 2 ** 30

/** Throws if the file can't be opened; DamagedFileError if opening it would end the process. */
export function openLmdbFile<Value, LmdbKey extends Key>({
  path,
  maxDbs,
  syncMode,
}: LmdbFileOptions): RootDatabase<Value, LmdbKey> {
  refuseDamaged(path)
  return open<Value, LmdbKey>({
    path,
    overlappingSync: syncMode === 'after-visible',
    eventTurnBatching: false,
    ...(process.platform === 'linux' ? { mapSize: MAP_BYTES } : {}),
    ...(maxDbs === undefined ? {} : { maxDbs }),
  })
}

/** Opens a file and resolves with the store that is made of it. If making one fails, the file is closed again. */
export async function openLmdbStore<Store, Value, LmdbKey extends Key>(
  options: LmdbFileOptions,
  make: (root: RootDatabase<Value, LmdbKey>) => Store | Promise<Store>,
): Promise<Store> {
  const root = openLmdbFile<Value, LmdbKey>(options)
  try {
    return await make(root)
  } catch (error) {
    await closeLmdbFile(root)
    throw error
  }
}

/**
 * Runs `work` as one transaction; resolves once it is committed, rejects with why it could not be. A child
 * transaction, since lmdb keeps what a plain one wrote before it threw.
 */
export async function commit<Result>(
  root: Pick<RootDatabase, 'childTransaction'>,
  work: () => Result,
): Promise<Result> {
  try {
    return await root.childTransaction(work)
  } catch (error) {
    if (error instanceof Error && 'commitError' in error) await error.commitError
    throw error
  }
}

/** Syncs and closes. lmdb would wait forever for the sync of a failed commit: an empty commit prevents that. */
export async function closeLmdbFile(root: Pick<RootDatabase, 'childTransaction' | 'close'>): Promise<void> {
  await commit(root, () => undefined)
  await root.close()
}

/*
 * Relies on the file format of lmdb 3 (MDB_meta in liblmdb/mdb.c): two pages that each say where the trees begin,
 * the one with the higher transaction in force. LMDB maps the file and trusts it: opening another file, or one that
 * ends before its trees begin, ends the process by a signal, without a message.
 */

const META_AT = 24
const MAGIC = 0xbeefc0de
const PAGE_SIZE_AT = 48
const ROOTS_AT = [88, 136]
const TRANSACTION_AT = 152
const META_BYTES = 160
const NO_ROOT = 0xffff_ffff_ffff_ffffn

/** Not an LMDB file, or not a whole one. */
export class DamagedFileError extends Error {
  override readonly name = 'DamagedFileError'

  constructor(path: string, how: string) {
    super(`the file ${path} is damaged: ${how}`)
  }
}

/** Throws DamagedFileError if opening the file would end the process. A missing or empty file is fine. */
export function refuseDamaged(path: string): void {
  if (!existsSync(path)) return
  const file = openSync(path, 'r')
  try {
    const { size } = fstatSync(file)
    if (size === 0) return
    const first = readMeta(file, 0)
    if (first === null) throw new DamagedFileError(path, 'it does not begin like an LMDB file')
    const pageBytes = first.readUInt32LE(PAGE_SIZE_AT)
    const second = readMeta(file, pageBytes)
    if (second === null) throw new DamagedFileError(path, 'its second page is not that of an LMDB file')
    const isFirstNewer = first.readBigUInt64LE(TRANSACTION_AT) > second.readBigUInt64LE(TRANSACTION_AT)
    for (const at of ROOTS_AT) {
      const root = (isFirstNewer ? first : second).readBigUInt64LE(at)
      if (root !== NO_ROOT && (root + 1n) * BigInt(pageBytes) > size) {
        throw new DamagedFileError(path, `it ends after ${size} bytes, before what it should hold`)
      }
    }
  } finally {
    closeSync(file)
  }
}

function readMeta(file: number, position: number): Buffer | null {
  const meta = Buffer.alloc(META_BYTES)
  const read = readSync(file, meta, { position })
  return read === META_BYTES && meta.readUInt32LE(META_AT) === MAGIC ? meta : null
}

/** For work in progress and what follows from it: views, answers, usage figures. */
const RESERVED_BYTES = 64 << 20
/** The reserve of a small disk is this share of it. */
const RESERVED_SHARE = 1 / 16
const CHECK_EVERY_MS = 100

/**
 * The free space of the disk that holds a folder. Appends are refused before it is full: what is on the log must still be
 * processed, and a failed write does harm (lmdb 3.5 formats its error into 100 bytes, whether it fits or not).
 */
export class FreeDisk {
  private checkedAtMs = -Infinity

  constructor(private readonly folder: string) {}

  /** Rejects with LogUnavailableError if only the reserve is left. */
  async require(): Promise<void> {
    if (performance.now() - this.checkedAtMs < CHECK_EVERY_MS) return
    const { free, reserved } = await this.measure()
    if (free < reserved) {
      throw new LogUnavailableError(`the disk has ${free} bytes left, of which ${reserved} are reserved`)
    }
    this.checkedAtMs = performance.now()
  }

  /** Bytes that may still be written until appends are refused; negative if they are. */
  async availableBytes(): Promise<number> {
    const { free, reserved } = await this.measure()
    return free - reserved
  }

  private async measure(): Promise<{ free: number; reserved: number }> {
    const { bavail, blocks, bsize } = await statfs(this.folder)
    const reserved = Math.ceil(Math.min(RESERVED_BYTES, blocks * bsize * RESERVED_SHARE))
    return { free: bavail * bsize, reserved }
  }
}
