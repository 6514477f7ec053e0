import { closeSync, existsSync, fstatSync, openSync, readSync } from 'node:fs'

/*
 * Relies on the file format of lmdb 3 (MDB_meta in liblmdb/mdb.c): two pages that each say where the trees begin,
 * the one with the higher transaction in force. LMDB maps the file and trusts it: opening one that is none, or
 * that ends before its trees begin, ends the process by a signal, without a word.
 */

const META_AT = 24
const MAGIC = 0xbeefc0de
const PAGE_SIZE_AT = 48
const ROOTS_AT = [88, 136]
const TRANSACTION_AT = 152
const META_BYTES = 160
const NO_ROOT = 0xffff_ffff_ffff_ffffn

/** A file that is no LMDB file, or not a whole one. */
export class DamagedFileError extends Error {
  override readonly name = 'DamagedFileError'

  constructor(path: string, how: string) {
    super(`the file ${path} is damaged: ${how}`)
  }
}

/** Throws DamagedFileError where opening the file would end the process. A missing or empty one is none yet. */
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
