import { readFileSync } from 'node:fs'
import { ConfigurationError } from '#libs/runtime/config/settings.js'
import { SETTINGS } from '#libs/runtime/config/settings-table.js'
import { messageOf } from '#libs/runtime/errors.js'

/** A note: the origin, a size and a root, and after an empty line the signatures. */
const NOTE = /^(\S+)\n\d+\n\S+\n\n(?:\u2014 .*\n?)+/gmu

/**
 * Reads the checkpoints of MAYFLY_AUDIT_LAST_CHECKPOINT, as notes by their origin. Throws ConfigurationError if the file
 * can't be read or has none.
 */
export function readKeptCheckpoints(path: string | null): ReadonlyMap<string, string> {
  if (path === null) return new Map()
  const { variable } = SETTINGS.auditLastCheckpoint
  let text: string
  try {
    text = readFileSync(path, 'utf8')
  } catch (error) {
    throw new ConfigurationError([`${variable}: ${messageOf(error)}`])
  }
  const notes = [...text.matchAll(NOTE)].map(([note, origin = '']) => [origin, note] as const)
  if (notes.length === 0) throw new ConfigurationError([`${variable}: ${path} has no checkpoint`])
  return new Map(notes)
}
