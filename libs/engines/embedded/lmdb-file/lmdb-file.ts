import { refuseDamaged } from './damage.js'
import { open, type Key, type RootDatabase } from 'lmdb'

/*
 * How Mayfly opens LMDB and writes to it. Relies on lmdb 3.5: a failed commit (a full disk) rejects each
 * transaction with an Error whose `commitError` is a promise that rejects with the cause, and, with
 * `eventTurnBatching`, one more promise that nobody is given. Node ends a process for a rejection that nobody
 * handles, so the batching is off and `commit` handles the cause.
 */

export interface LmdbFileOptions {
  path: string
  /** Most named databases in the file. */
  maxDbs?: number
  /** `before-seen`: what is committed has been synced. `after-seen`: it is seen at once and synced soon after. */
  isSynced: 'before-seen' | 'after-seen'
}

/**
 * Address space for the memory map, many times what a file may come to: one that grows past its map is mapped anew, and
 * the pages of the old map stay resident beside those of the new one. On Linux it takes neither memory nor disk.
 */
const MAP_BYTES = 256 * 2 ** 30

/** Throws if the file can't be opened, DamagedFileError if that is seen beforehand. */
export function openLmdbFile<Value, LmdbKey extends Key>({
  path,
  maxDbs,
  isSynced,
}: LmdbFileOptions): RootDatabase<Value, LmdbKey> {
  refuseDamaged(path)
  return open<Value, LmdbKey>({
    path,
    overlappingSync: isSynced === 'after-seen',
    eventTurnBatching: false,
    ...(process.platform === 'linux' ? { mapSize: MAP_BYTES } : {}),
    ...(maxDbs === undefined ? {} : { maxDbs }),
  })
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

/** Syncs and closes. lmdb would wait for ever for the sync of a commit that failed: an empty one clears it. */
export async function closeLmdbFile(root: Pick<RootDatabase, 'childTransaction' | 'close'>): Promise<void> {
  await commit(root, () => undefined)
  await root.close()
}
