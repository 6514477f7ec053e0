import { randomBytes, hkdfSync } from 'node:crypto'
import { createParamDecorator, type ExecutionContext } from '@nestjs/common'
import type { FastifyRequest } from 'fastify'
import { mintId } from '#libs/domain/ids/mint.js'
import { type Id, idFromBytes } from '#libs/domain/ids/typeid.js'
import type { Run } from '#libs/ports/idempotency/idempotency-store.js'

/**
 * Makes ids, and random bytes that are fit for secrets. Handlers take them only from here, in an order that depends only
 * on the request, so that a request that runs again can be given the same ones.
 */
export interface Minting {
  id<Prefix extends string>(prefix: Prefix): Id<Prefix>
  bytes(count: number): Uint8Array
}

const MINTING = Symbol('minting')

const AT_RANDOM: Minting = { id: mintId, bytes: randomBytes }

/** Replaces the random ids and bytes of a request. */
export function setMinting(request: FastifyRequest, minting: Minting): void {
  Object.assign(request, { [MINTING]: minting })
}

/** The Minting of the request that a handler answers. */
export const Mint = createParamDecorator((_: unknown, context: ExecutionContext): Minting => {
  const request = context.switchToHttp().getRequest<FastifyRequest & { [MINTING]?: Minting }>()
  return request[MINTING] ?? AT_RANDOM
})

/** The bits of a UUIDv7 that keep the ids of one request in the order in which they were made. */
const MAX_ORDERED = 0xfff

/**
 * The same ids and bytes for every run of a request. Ids are derived from the seed, as UUIDv7 of the time at which the
 * request first came (RFC 9562, section 5.7). Bytes may be secrets, so they are derived from the caller's secret too:
 * the seed alone does not reveal them.
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
