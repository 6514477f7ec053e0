import { existsSync, mkdirSync, statSync } from 'node:fs'
import { dirname } from 'node:path'
import { codeOf } from './errors.js'

/**
 * Creates a folder and its missing parents, which only this user may read. Throws the system's error if it can't. Node's
 * own `recursive` never returns if a file system creates no folders and says ENOENT, as /proc does (Node 24).
 */
export function makeFolder(path: string): void {
  const parent = dirname(path)
  if (!existsSync(parent)) makeFolder(parent)
  try {
    mkdirSync(path, { mode: 0o700 })
  } catch (error) {
    if (codeOf(error) !== 'EEXIST' || !statSync(path).isDirectory()) throw error
  }
}
