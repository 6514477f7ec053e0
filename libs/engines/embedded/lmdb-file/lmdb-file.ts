import { closeSync, existsSync, fstatSync, openSync, readSync } from 'node:fs'
import { statfs } from 'node:fs/promises'
import { open, type Key, type RootDatabase } from 'lmdb'
import { LogUnavailableError } from '#libs/ports/event-log/event-log.js'

/*
 * LMDB files: opening, after a check that they are not damaged; committing; closing; and the free space of their disk.
 *
 * Relies on lmdb 3.5: a failed commit (a full disk) rejects each transaction with an Error whose `commitError` is a
 * promise that rejects with the cause. With `eventTurnBatching` it also rejects a promise that is not returned. Node ends
 * a process at an unhandled rejection, so the batching is off and `commit` handles the cause.
 */

export interface LmdbFileOptions {
  path: string
  /** The maximum number of named databases in the file. */
  maxDbs?: number
  /** Whether a commit is synced to disk before it becomes visible, or soon after. */
  syncMode: 'before-visible' | 'after-visible'
}

/**
 * Address space for the memory map, many times the size of any file. A file that outgrows its map is mapped again, and
 * the pages of the old map stay resident beside those of the new one. On Linux the map itself takes no memory or disk.
 */
const MAP_BYTES = 256 * 2 ** 30

/** Throws if the file can't be opened. Throws DamagedFileError if opening it would crash the process. */
export function openLmdbFile<Value, LmdbKey extends Key>({
  path,
  maxDbs,
  syncMode,
}: LmdbFileOptions): RootDatabase<Value, LmdbKey> {
  checkUndamaged(path)
  return open<Value, LmdbKey>({
    path,
    overlappingSync: syncMode === 'after-visible',
    eventTurnBatching: false,
    ...(process.platform === 'linux' ? { mapSize: MAP_BYTES } : {}),
    ...(maxDbs === undefined ? {} : { maxDbs }),
  })
}

/** Opens a file and resolves with the store that `make` creates on it. Closes the file if `make` fails. */
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
 * Runs `work` in a transaction. Resolves once it is committed, rejects with the cause if it can't be. It is a child
 * transaction, because lmdb keeps what a plain transaction wrote before it threw.
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

/** Syncs and closes a file. The empty commit is needed because lmdb would wait forever for the sync of a failed one. */
export async function closeLmdbFile(root: Pick<RootDatabase, 'childTransaction' | 'close'>): Promise<void> {
  await commit(root, () => undefined)
  await root.close()
}

/*
 * The check relies on the file format of lmdb 3 (MDB_meta in liblmdb/mdb.c): each of the first two pages has the roots
 * of the trees, and the page with the higher transaction is valid. LMDB maps the file and trusts it. If it opens a file of
 * another format, or one that is truncated before a root, the process is killed by a signal, without a message.
 */

const MAGIC_OFFSET = 24
const MAGIC = 0xbeefc0de
const PAGE_SIZE_OFFSET = 48
const ROOT_OFFSETS = [88, 136]
const TRANSACTION_OFFSET = 152
const META_BYTES = 160
const NO_ROOT = 0xffff_ffff_ffff_ffffn

/** The file is not an LMDB file, or is truncated. */
export class DamagedFileError extends Error {
  override readonly name = 'DamagedFileError'

  constructor(path: string, damage: string) {
    super(`the file ${path} is damaged: ${damage}`)
  }
}

/** Throws DamagedFileError if opening the file would crash the process. A missing or empty file is valid. */
function checkUndamaged(path: string): void {
  if (!existsSync(path)) return
  const file = openSync(path, 'r')
  try {
    const { size } = fstatSync(file)
    if (size === 0) return
    const first = readMeta(file, 0)
    if (first === null) throw new DamagedFileError(path, 'it does not start like an LMDB file')
    const pageBytes = first.readUInt32LE(PAGE_SIZE_OFFSET)
    const second = readMeta(file, pageBytes)
    if (second === null) throw new DamagedFileError(path, 'its second page is not that of an LMDB file')
    const isFirstNewer =
      first.readBigUInt64LE(TRANSACTION_OFFSET) > second.readBigUInt64LE(TRANSACTION_OFFSET)
    for (const offset of ROOT_OFFSETS) {
      const root = (isFirstNewer ? first : second).readBigUInt64LE(offset)
      if (root !== NO_ROOT && (root + 1n) * BigInt(pageBytes) > size) {
        throw new DamagedFileError(path, `it ends after ${size} bytes, before the end of its data`)
      }
    }
  } finally {
    closeSync(file)
  }
}

function readMeta(file: number, position: number): Buffer | null {
  const meta = Buffer.alloc(META_BYTES)
  const read = readSync(file, meta, { position })
  return read === META_BYTES && meta.readUInt32LE(MAGIC_OFFSET) === MAGIC ? meta : null
}

/** Space for requests in progress and for what follows from them: views, stored responses, usage figures. */
const RESERVED_BYTES = 64 << 20
/** On a small disk, only this share of it is reserved. */
const RESERVED_SHARE = 1 / 16
const CHECK_EVERY_MS = 100

/**
 * The free space of the disk of a folder. Appends are rejected before the disk is full, because records on the log must
 * still be processed, and a failed write can corrupt memory (lmdb 3.5 formats its error into a buffer of 100 bytes, even
 * if it does not fit).
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

  /** Bytes that can be written until appends are rejected; negative if they are. */
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
