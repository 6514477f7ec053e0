import {
  accessSync,
  constants,
  existsSync,
  mkdirSync,
  readFileSync,
  writeFileSync,
  renameSync,
} from 'node:fs'
import { join, resolve } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { messageOf, StartError } from '#libs/runtime/errors.js'
import { makeSecretKey } from '#libs/ports/key-vault/content.js'

/** A folder that one process at a time uses. */
export interface DataDir {
  path: string
  /** Lets another process take it. */
  release: () => void
}

/** Why the data folder can't be used, and what to do. */
export class DataDirError extends StartError {
  override readonly name = 'DataDirError'
}

/** Makes the folder if it is missing and takes it for this process. Throws DataDirError. */
export function takeDataDir(given: string): DataDir {
  const path = resolve(given)
  try {
    mkdirSync(path, { recursive: true, mode: 0o700 })
    accessSync(path, constants.R_OK | constants.W_OK | constants.X_OK)
  } catch (cause) {
    throw new DataDirError(
      `the data folder ${path} can't be written: ${messageOf(cause)}; set MAYFLY_DATA_DIR to one that can`,
      { cause },
    )
  }
  const lock = takeLock(path)
  return { path, release: () => lock.close() }
}

/** An exclusive transaction of SQLite is a lock of the operating system: it ends with the process in any case. */
function takeLock(path: string): DatabaseSync {
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
          `end that one, or set MAYFLY_DATA_DIR to another folder`,
        { cause },
      )
    }
    throw new DataDirError(`the data folder ${path} can't be locked: ${messageOf(cause)}`, { cause })
  }
}

/** The configured master key, or else the folder's own, which is made if it has none and no keys wrapped by one. */
export function masterKeyText(path: string, configured: string | null, hasKeys: boolean): string {
  if (configured !== null) return configured
  const file = join(path, 'master.key')
  if (!existsSync(file)) {
    if (hasKeys) {
      throw new DataDirError(
        `${file} is missing, which the keys of inboxes in ${path} are wrapped by: ` +
          `put a copy of it back, or set MAYFLY_MASTER_KEY to what it held`,
      )
    }
    writeFileSync(`${file}.new`, `${makeSecretKey().toString('base64')}\n`, { mode: 0o600, flush: true })
    renameSync(`${file}.new`, file)
  }
  return readFileSync(file, 'utf8').trim()
}
