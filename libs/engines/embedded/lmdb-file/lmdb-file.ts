import { readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { statfs } from 'node:fs/promises'
import { open, type Key, type RootDatabase } from 'lmdb'
import { LogUnavailableError } from '#libs/ports/event-log/event-log.js'
import { checkPages, DamagedFileError } from './page-check.js'

/*
 * LMDB files: opening, after a check that they are not damaged; committing; closing; and the free space of their disk. A
 * file that is as it was when it was closed is not checked, since the check reads all pages of its trees.
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
  /** Whether everything in the file can be computed again. It is then not opened if anything else has changed it. */
  isDerived?: boolean
  /** The condition of the file, if it is known already. */
  condition?: Condition
}

/**
 * Address space for the memory map, many times the size of any file. A file that outgrows its map is mapped again, and
 * the pages of the old map stay resident beside those of the new one. On Linux the map itself takes no memory or disk.
 */
const MAP_BYTES = 256 * 2 ** 30

/** Throws if the file can't be opened. Throws DamagedFileError if a page is damaged. */
export function openLmdbFile<Value, LmdbKey extends Key>({
  path,
  maxDbs,
  syncMode,
  isDerived = false,
  condition = conditionOf(path),
}: LmdbFileOptions): RootDatabase<Value, LmdbKey> {
  if (condition === 'changed' && isDerived) {
    throw new DamagedFileError(path, 'it was changed since Mayfly closed it')
  }
  if (condition !== 'closed') checkPages(path)
  rmSync(noteOf(path), { force: true })
  const root = open<Value, LmdbKey>({
    path,
    overlappingSync: syncMode === 'after-visible',
    eventTurnBatching: false,
    ...(process.platform === 'linux' ? { mapSize: MAP_BYTES } : {}),
    ...(maxDbs === undefined ? {} : { maxDbs }),
  })
  paths.set(root, path)
  return root
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
    // Without a note, so that the next start checks the file again.
    paths.delete(root)
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
export async function closeLmdbFile<Value, LmdbKey extends Key>(
  root: RootDatabase<Value, LmdbKey>,
): Promise<void> {
  await commit(root, () => undefined)
  await root.close()
  const path = paths.get(root)
  if (path !== undefined) noteClosed(path)
}

const paths = new WeakMap<object, string>()

/** Whether a file is as it was when it was closed. A process that is killed does not close its files. */
export type Condition = 'closed' | 'not-closed' | 'changed'

export function conditionOf(path: string): Condition {
  const file = statSync(path, { throwIfNoEntry: false })
  const [size = NaN, changedMs = NaN] = readNote(path).split(' ').map(Number)
  if (file === undefined || Number.isNaN(changedMs)) return 'not-closed'
  // A copy of the file may have a less precise time.
  return file.size === size && Math.abs(file.mtimeMs - changedMs) < 1 ? 'closed' : 'changed'
}

/** The file with the size and time of a file that was closed. */
function noteOf(path: string): string {
  return `${path}-closed`
}

function readNote(path: string): string {
  try {
    return readFileSync(noteOf(path), 'utf8')
  } catch {
    return ''
  }
}

function noteClosed(path: string): void {
  try {
    const { size, mtimeMs } = statSync(path)
    writeFileSync(noteOf(path), `${size} ${mtimeMs}`)
  } catch {
    // Without the note, the file is checked when it is opened again.
    rmSync(noteOf(path), { force: true })
  }
}

/** Space for requests in progress and for what follows from them: views, stored responses, usage figures. */
const RESERVED_BYTES = 64 << 20
/** On a small disk, only this share of it is reserved. */
const RESERVED_SHARE = 1 / 16
/** Of the reserve, the share that removals may use too, so that space can be freed on a full disk. */
const REMOVALS_SHARE = 1 / 2
const CHECK_EVERY_MS = 100

/**
 * The free space of the disk of a folder. Appends are rejected before the disk is full, because records on the log must
 * still be processed, and a failed write can corrupt memory (lmdb 3.5 formats its error into a buffer of 100 bytes, even
 * if it does not fit).
 */
export class FreeDisk {
  private checkedAtMs = -Infinity

  constructor(private readonly folder: string) {}

  /**
   * Resolves with the items that may be written: only removals if less than the reserve is left. Rejects with
   * LogUnavailableError if there are none.
   */
  async admit<Item>(items: readonly Item[], isRemoval: (item: Item) => boolean): Promise<readonly Item[]> {
    if (performance.now() - this.checkedAtMs < CHECK_EVERY_MS) return items
    const { free, reserved } = await this.measure()
    if (free >= reserved) {
      this.checkedAtMs = performance.now()
      return items
    }
    const admitted = free >= reserved * (1 - REMOVALS_SHARE) ? items.filter(isRemoval) : []
    if (admitted.length > 0) return admitted
    throw new LogUnavailableError(`the disk has ${free} bytes left, of which ${reserved} are reserved`)
  }

  /** Bytes that can be written until appends are rejected; negative if they are. */
  async availableBytes(): Promise<number> {
    const { free, reserved } = await this.measure()
    return free - reserved
  }

  /** Whether appends other than removals are rejected. */
  async state(): Promise<'ok' | 'full'> {
    return (await this.availableBytes()) < 0 ? 'full' : 'ok'
  }

  private async measure(): Promise<{ free: number; reserved: number }> {
    const { bavail, blocks, bsize } = await statfs(this.folder)
    const reserved = Math.ceil(Math.min(RESERVED_BYTES, blocks * bsize * RESERVED_SHARE))
    return { free: bavail * bsize, reserved }
  }
}
