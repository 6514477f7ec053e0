import { accessSync, constants, existsSync, readFileSync, writeFileSync, renameSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { messageOf, StartError } from '#libs/runtime/errors.js'
import { makeFolder } from '#libs/runtime/folder.js'
import { MasterKeys } from '#libs/ports/key-vault/master-key.js'
import { makeSecretKey } from '#libs/ports/key-vault/sealing.js'

/** A folder that one process at a time uses. */
export interface DataDir {
  path: string
  release: () => void
}

/** The data folder can't be used. The message says why, and what to do. */
export class DataDirError extends StartError {}

/** Creates the folder if it is missing, and locks it for this process. Throws DataDirError. */
export function lockDataDir(folder: string): DataDir {
  const path = resolve(folder)
  try {
    makeFolder(path)
    accessSync(path, constants.R_OK | constants.W_OK | constants.X_OK)
  } catch (cause) {
    throw new DataDirError(
      `the data folder ${path} can't be written: ${messageOf(cause)}; set MAYFLY_DATA_DIR to a writable folder`,
      { cause },
    )
  }
  const lock = acquireLock(path)
  return { path, release: () => lock.close() }
}

/** Locks with an exclusive SQLite transaction, which the operating system releases however the process ends. */
function acquireLock(path: string): DatabaseSync {
  let lock: DatabaseSync | null = null
  try {
    lock = new DatabaseSync(join(path, 'lock'), { timeout: 0 })
    lock.exec('BEGIN EXCLUSIVE')
    return lock
  } catch (cause) {
    lock?.close()
    if (/locked/.test(messageOf(cause))) {
      throw new DataDirError(
        `the data folder ${path} is in use by another Mayfly process; ` +
          `stop that process, or set MAYFLY_DATA_DIR to another folder`,
        { cause },
      )
    }
    throw new DataDirError(`the data folder ${path} can't be locked: ${messageOf(cause)}`, { cause })
  }
}

/**
 * The configured master keys, otherwise the one in the folder. Creates one if the folder has none, unless keys of inboxes
 * exist, which a new master key can't decrypt. Throws DataDirError.
 */
export function masterKeysOf(path: string, configured: string | null, hasKeys: boolean): MasterKeys {
  const file = join(path, 'master.key')
  const isMissing = configured === null && !existsSync(file)
  if (isMissing && !hasKeys) {
    writeFileSync(`${file}.new`, `${makeSecretKey().toString('base64')}\n`, { mode: 0o600, flush: true })
    renameSync(`${file}.new`, file)
  }
  const keys = isMissing && hasKeys ? null : MasterKeys.parse(configured ?? readFileSync(file, 'utf8').trim())
  if (keys !== null) return keys
  throw new DataDirError(
    `${file} is ${isMissing ? 'missing' : 'damaged: it is not 32 bytes in base64'}. It encrypts the keys of inboxes in ` +
      `${path}: restore it from a copy, or set MAYFLY_MASTER_KEY to its content`,
  )
}
