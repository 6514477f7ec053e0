import { TILE_WIDTH } from './tree.js'

/*
 * The files of an audit log (C2SP tlog-tiles).
 */

/** The number of leaves whose records are read at once, at most. */
export const RECORDS_AT_ONCE = 256

/** The index of a tile in groups of three digits, such as `x001/x234/067`. */
export function tilePath(index: number): string {
  const groups =
    String(index)
      .padStart(Math.ceil(String(index).length / 3) * 3, '0')
      .match(/\d{3}/g) ?? []
  return groups.map((group, at) => (at < groups.length - 1 ? `x${group}` : group)).join('/')
}

/** The file of a tile with that number of hashes, or with `entries` as the level of a bundle of entries. */
export function tileFile(level: string, index: number, width: number): string {
  return `tile/${level}/${tilePath(index)}${width === TILE_WIDTH ? '' : `.p/${width}`}`
}

/** A bundle of entries: each after its length in two bytes. */
export function writeEntries(entries: readonly string[]): Buffer {
  return Buffer.concat(
    entries.flatMap((text) => {
      const entry = Buffer.from(text)
      const length = Buffer.alloc(2)
      length.writeUInt16BE(entry.length)
      return [length, entry]
    }),
  )
}

/** The entries of a bundle, as they are hashed; null if the last one is not complete. */
export function readEntries(bundle: Buffer): Buffer[] | null {
  const entries: Buffer[] = []
  for (let at = 0; at < bundle.length;) {
    const end = at + 2 <= bundle.length ? at + 2 + bundle.readUInt16BE(at) : Infinity
    if (end > bundle.length) return null
    if (entries.length === TILE_WIDTH) return null
    entries.push(bundle.subarray(at + 2, end))
    at = end
  }
  return entries
}
