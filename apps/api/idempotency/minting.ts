import { hkdfSync, randomBytes } from 'node:crypto'
import { createParamDecorator, type ExecutionContext } from '@nestjs/common'
import type { FastifyRequest } from 'fastify'
import { mintId } from '#libs/domain/ids/mint.js'
import { idFromBytes, type Id } from '#libs/domain/ids/typeid.js'
import type { Run } from '#libs/ports/idempotency/idempotency-store.js'

/**
 * Makes ids, and random bytes that may be used for secrets. Handlers take ids and bytes only from here, in an order
 * that depends only on the request. So a request that runs again gets the same ones.
 */
export interface Minting {
  id<Prefix extends string>(prefix: Prefix): Id<Prefix>
  bytes(count: number): Uint8Array
}

const MINTING = Symbol('minting')

export const RANDOM_MINTING: Minting = { id: mintId, bytes: randomBytes }

export function setMinting(request: FastifyRequest, minting: Minting): void {
  Object.assign(request, { [MINTING]: minting })
}

export const Mint = createParamDecorator((_: unknown, context: ExecutionContext): Minting => {
  const request = context.switchToHttp().getRequest<FastifyRequest & { [MINTING]?: Minting }>()
  return request[MINTING] ?? RANDOM_MINTING
})

/** The bits of a UUIDv7 that order the ids of one request. */
const MAX_ORDERED = 0xfff

/**
 * Makes the same ids and bytes in every run of a request. Ids are UUIDv7 with the time at which the request first
 * arrived (RFC 9562, section 5.7), derived from the seed. Bytes may be secrets, so they are derived from the caller's
 * secret too: the seed is not enough to compute them.
 */
export function seededMinting({ seed, firstAtMs }: Pick<Run, 'seed' | 'firstAtMs'>, secret: string): Minting {
  let ids = 0
  let secrets = 0
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
      secrets += 1
      return Buffer.from(hkdfSync('sha256', secret, seed, `mayfly bytes ${secrets}`, count))
    },
  }
}
