import { open as openFile, rename, rm } from 'node:fs/promises'
import { dirname } from 'node:path'
import type { RootDatabase } from 'lmdb'
import { LRUCache } from 'lru-cache'
import pLimit from 'p-limit'
import {
  closeLmdbFile,
  commit,
  conditionOf,
  openLmdbFile,
  openLmdbStore,
  type LmdbFileOptions,
} from '#libs/engines/embedded/lmdb-file/lmdb-file.js'
import { DamagedFileError } from '#libs/engines/embedded/lmdb-file/page-check.js'
import {
  isKeyOwner,
  KeyForgottenError,
  KeyVaultUnavailableError,
  type KeyLookup,
  type KeyOwner,
  type KeyVault,
} from '#libs/ports/key-vault/key-vault.js'
import type { MasterKeys, WrappedKey } from '#libs/ports/key-vault/master-key.js'
import { makeSecretKey, type SecretKey } from '#libs/ports/key-vault/sealing.js'
import { messageOf } from '#libs/runtime/errors.js'
import { PeriodicTask } from '#libs/runtime/timing.js'

/*
 * Relies on lmdb 3 with commits that are synced to disk before they are visible; on its compact backup, which does not
 * copy freed pages, so that removed keys are not in the copy; and on rename(2) being atomic.
 */

export interface LmdbKeyVaultOptions {
  /** A file of its own, because it is rewritten as a whole. */
  path: string
  masterKeys: MasterKeys
  now: () => Date
  /** Called if the rewrite failed. It is retried. */
  onRewriteError: (error: unknown) => void
}

type KeyRecord = WrappedKey | { forgottenAt: Date }
type VaultRow = KeyRecord | Date | string
type Root = RootDatabase<VaultRow, string>

/** The entry of a file that still contains bytes of forgotten keys. */
const UNCLEAN_SINCE = 'unclean-since'
/** The entry with the id of the master key last used for new keys, without which most keys can't be decrypted. */
const MASTER_KEY_ID = 'master-key-id'
/** A forgotten key is removed from the file within an hour, also if a rewrite fails. */
const REWRITE_EVERY_MS = 900_000
/** Decrypting a key takes longer than sealing a mail with it. */
const MAX_CACHED_KEYS = 10_000

export interface LmdbKeyVault extends KeyVault {
  /** If keys were forgotten, rewrites the file without its freed pages. */
  rewrite(): Promise<void>
}

/**
 * Rejects if the file can't be opened, with MasterKeyMissingError if its keys can't be decrypted, and with
 * DamagedFileError if a page or a key is damaged.
 */
export function openLmdbKeyVault(options: LmdbKeyVaultOptions): Promise<LmdbKeyVault> {
  const { path, masterKeys } = options
  const condition = conditionOf(path)
  return openLmdbStore({ ...fileAt(path), condition }, async (root: Root) => {
    const masterKeyId = root.get(MASTER_KEY_ID)
    if (typeof masterKeyId === 'string') masterKeys.require(masterKeyId)
    if (condition !== 'closed') checkKeys(root, options)
    if (masterKeyId !== masterKeys.current) {
      await commit(root, () => root.putSync(MASTER_KEY_ID, masterKeys.current))
    }
    return lmdbKeyVault(root, options)
  })
}

function lmdbKeyVault(
  opened: Root,
  { path, masterKeys, now, onRewriteError }: LmdbKeyVaultOptions,
): LmdbKeyVault {
  let root = opened
  /** Set while the rewritten file replaces the old one. Reads and writes wait for it. */
  let swap: Promise<unknown> | null = null
  /** Runs `forget`, `rewrite` and `close` one after the other. */
  const exclusively = pLimit(1)
  const cache = new LRUCache<KeyOwner, SecretKey>({ max: MAX_CACHED_KEYS })
  const rewrites = new PeriodicTask({
    work: () => rewrite().catch(onRewriteError),
    everyMs: REWRITE_EVERY_MS,
  })
  rewrites.start()

  return {
    async create(owner) {
      while (swap !== null) await swap
      const key = makeSecretKey()
      const wrapped = masterKeys.wrap(owner, key)
      const existing = await commit(root, () => {
        const record = root.get(owner)
        if (record === undefined) root.putSync(owner, wrapped)
        return record
      }).catch((cause: unknown) => {
        throw new KeyVaultUnavailableError(`the key of ${owner} could not be stored`, { cause })
      })
      if (existing === undefined) return key
      const found = read(owner, existing)
      if (found.state !== 'known') throw new KeyForgottenError(owner)
      return found.key
    },

    async find(owner) {
      while (swap !== null) await swap
      const key = cache.get(owner)
      return key === undefined ? read(owner, root.get(owner)) : { state: 'known', key }
    },

    forget: (owners) =>
      exclusively(async () => {
        const forgottenAt = now()
        await commit(root, () => {
          for (const owner of owners) {
            const record = root.get(owner)
            if (typeof record === 'object' && 'forgottenAt' in record) continue
            root.putSync(owner, { forgottenAt })
            root.putSync(UNCLEAN_SINCE, forgottenAt)
          }
        })
        for (const owner of owners) cache.delete(owner)
      }),

    rewrite,

    async close() {
      await rewrites.stop()
      await exclusively(() => closeLmdbFile(root))
    },
  }

  function rewrite(): Promise<void> {
    return exclusively(async () => {
      if (root.get(UNCLEAN_SINCE) === undefined) return
      const swapping = replaceWithCopy().finally(() => (swap = null))
      swap = Promise.allSettled([swapping])
      await swapping
    })
  }

  /** If the process is killed midway, the path has the old or the new file. The old one still has UNCLEAN_SINCE. */
  async function replaceWithCopy(): Promise<void> {
    const copy = `${path}.rewritten`
    const removeCopy = () =>
      Promise.all(['', '-lock', '-closed'].map((end) => rm(`${copy}${end}`, { force: true })))
    await removeCopy()
    await root.committed
    await root.backup(copy, true)
    const copied: Root = openLmdbFile(unchanged(copy))
    await commit(copied, () => copied.removeSync(UNCLEAN_SINCE))
    await closeLmdbFile(copied)
    await sync(copy)
    await closeLmdbFile(root)
    try {
      await rename(copy, path)
      await sync(dirname(path))
    } finally {
      root = openLmdbFile(unchanged(path))
      await removeCopy()
    }
  }

  function read(owner: KeyOwner, record: VaultRow | undefined): KeyLookup {
    if (typeof record !== 'object' || record instanceof Date) return { state: 'unknown' }
    if ('forgottenAt' in record) return { state: 'forgotten' }
    const key = masterKeys.unwrap(owner, record)
    cache.set(owner, key)
    return { state: 'known', key }
  }
}

/** Throws DamagedFileError if a key can't be decrypted. Keys whose master key is not configured are not checked. */
function checkKeys(root: Root, { path, masterKeys }: LmdbKeyVaultOptions): void {
  for (const name of root.getKeys({})) {
    if (name === UNCLEAN_SINCE || name === MASTER_KEY_ID) continue
    try {
      checkKey(name, root.get(name), masterKeys)
    } catch (error) {
      throw new DamagedFileError(path, `the key of ${name} can't be read: ${messageOf(error)}`)
    }
  }
}

function checkKey(name: string, record: VaultRow | undefined, masterKeys: MasterKeys): void {
  if (!isKeyOwner(name)) throw new TypeError('this is no id of an inbox, account or member')
  if (typeof record !== 'object' || record instanceof Date) throw new TypeError('this is no key')
  if ('forgottenAt' in record) return
  if (masterKeys.has(record.masterKeyId)) masterKeys.unwrap(name, record)
  else if (canUnwrap(name, { ...record, masterKeyId: masterKeys.current }, masterKeys)) {
    throw new TypeError('the id of its master key is wrong')
  }
}

function canUnwrap(owner: KeyOwner, record: WrappedKey, masterKeys: MasterKeys): boolean {
  try {
    masterKeys.unwrap(owner, record)
    return true
  } catch {
    return false
  }
}

function fileAt(path: string): LmdbFileOptions {
  return { path, syncMode: 'before-visible' }
}

/** A file that this process has just written. Its pages are not checked, because calls wait for the swap. */
function unchanged(path: string): LmdbFileOptions {
  return { ...fileAt(path), condition: 'closed' }
}

async function sync(path: string): Promise<void> {
  const file = await openFile(path, 'r')
  try {
    await file.sync()
  } finally {
    await file.close()
  }
}
