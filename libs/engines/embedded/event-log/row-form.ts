import type { LogRecord } from '#libs/ports/event-log/event-log.js'

/** A record as it is stored, under short names. */
export interface Row {
  /** Milliseconds since 1970 at which the record was appended. */
  t: number
  k: string
  h: LogRecord['headers']
  /** Of a row that was read, the store's own memory: to be copied before the next one is read. */
  v: Uint8Array
}

const EVENT = [
  ...['ce_specversion', 'ce_id', 'ce_type', 'ce_source', 'ce_subject', 'ce_time', 'ce_schemaversion'],
  'content-type',
]
const OF_ACCOUNT = [...EVENT, 'ce_accountid', 'ce_environment']

/**
 * The names of an object's properties that stand in a row as one byte: the place in this list. Rows on disk are read by
 * it, so that nothing of it may change, and more may only follow. An object of other properties, or in another order, is
 * stored with their names.
 */
const STRUCTURES = [['t', 'k', 'h', 'v'], EVENT, OF_ACCOUNT, [...OF_ACCOUNT, 'ce_keyid']]

interface RowForm {
  encoder: { structures: string[][]; maxSharedStructures: number; copyBuffers: false }
}

/**
 * How lmdb's encoder, msgpackr, is to write rows: with the structures that it is given, and learns no more. Those that
 * it learned would stand in the transaction that needed them first, and be lost with it if it failed. For one database:
 * an encoder changes the lists.
 *
 * It does not copy values: its copies, each an ArrayBuffer of its own, take as long as the rest of reading.
 */
export function rowForm(): RowForm {
  const structures = structuredClone(STRUCTURES)
  return { encoder: { structures, maxSharedStructures: STRUCTURES.length, copyBuffers: false } }
}
