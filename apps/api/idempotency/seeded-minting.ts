import { hkdfSync } from 'node:crypto'
import type { Run } from '#libs/ports/idempotency/idempotency-store.js'
import { idFromBytes } from '#libs/domain/ids/typeid.js'
import type { Minting } from '../access/minting.js'

/** Bits of a UUIDv7 that keep the ids of one request in the order of their making. */
const MAX_ORDERED = 0xfff

/**
 * The same ids and bytes for every run of a request. Ids come of the seed, a UUIDv7 of the moment at which the request
 * came first (RFC 9562, section 5.7); bytes of the seed and of the caller's secret, since they may be secrets and
 * nobody who can read the seed alone may know them.
 */
export function seededMinting({ seed, firstAtMs }: Pick<Run, 'seed' | 'firstAtMs'>, secret: string): Minting {
  let ids = 0
  let draws = 0
  return {
    id(prefix) {
      ids += 1
      const uuid = Buffer.from(hkdfSync('sha256', seed, '', `mayfly id ${ids}`, 16))
      uuid.writeUIntBE(firstAtMs, 0, 6)
      uuid.writeUInt16BE(0x7000 | Math.min(ids, MAX_ORDERED), 6)
      uuid.writeUInt8(0x80 | (uuid.readUInt8(8) & 0x3f), 8)
      return idFromBytes(prefix, uuid)
    },
    bytes(count) {
      draws += 1
      return Buffer.from(hkdfSync('sha256', secret, seed, `mayfly bytes ${draws}`, count))
    },
  }
}
