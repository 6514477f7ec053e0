import { randomBytes, hkdfSync } from 'node:crypto'
import { createParamDecorator, type ExecutionContext } from '@nestjs/common'
import type { FastifyRequest } from 'fastify'
import { mintId } from '#libs/domain/ids/mint.js'
import { type Id, idFromBytes } from '#libs/domain/ids/typeid.js'
import type { Run } from '#libs/ports/idempotency/idempotency-store.js'

/**
 * What a request makes up: ids and random bytes, fit for secrets. Handlers take them from here alone, in an order that
 * depends on the request alone, so that a request that is run again can be given the same ones.
 */
export interface Minting {
  id<Prefix extends string>(prefix: Prefix): Id<Prefix>
  bytes(count: number): Uint8Array
}

const MINTING = Symbol('minting')

const AT_RANDOM: Minting = { id: mintId, bytes: randomBytes }

/** Gives a request other ids and bytes than random ones. */
export function setMinting(request: FastifyRequest, minting: Minting): void {
  Object.assign(request, { [MINTING]: minting })
}

/** The Minting of the request that a handler answers. */
export const Mint = createParamDecorator((_: unknown, context: ExecutionContext): Minting => {
  const request = context.switchToHttp().getRequest<FastifyRequest & { [MINTING]?: Minting }>()
  return request[MINTING] ?? AT_RANDOM
})

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
