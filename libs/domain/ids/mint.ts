import { hkdfSync } from 'node:crypto'
import { typeidUnboxed } from 'typeid-js'
import { brand, idFromBytes, type Id } from './typeid.js'

/** Makes a new id, a UUIDv7. Reads the clock and random bits. */
export function mintId<Prefix extends string>(prefix: Prefix): Id<Prefix> {
  return brand(prefix, typeidUnboxed(prefix))
}

/** The bits of a UUIDv7 that order the ids of one seed. */
const MAX_ORDERED = 0xfff

/** The id with that number of a seed: a UUIDv7 with the seed's time (RFC 9562, section 5.7). */
export function deriveId<Prefix extends string>(
  prefix: Prefix,
  { seed, firstAtMs }: { seed: Uint8Array; firstAtMs: number },
  number: number,
): Id<Prefix> {
  const uuid = Buffer.from(hkdfSync('sha256', seed, '', `mayfly id ${number}`, 16))
  uuid.writeUIntBE(firstAtMs, 0, 6)
  uuid.writeUInt16BE(0x7000 | Math.min(number, MAX_ORDERED), 6)
  uuid.writeUInt8(0x80 | (uuid.readUInt8(8) & 0x3f), 8)
  return idFromBytes(prefix, uuid)
}
