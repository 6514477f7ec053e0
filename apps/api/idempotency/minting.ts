import { hkdfSync, randomBytes } from 'node:crypto'
import { createParamDecorator, type ExecutionContext } from '@nestjs/common'
import type { FastifyRequest } from 'fastify'
import { deriveId, mintId } from '#libs/domain/ids/mint.js'
import type { Id } from '#libs/domain/ids/typeid.js'
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

/**
 * Makes the same ids and bytes in every run of a request. Ids have the time at which the request first arrived. Bytes
 * may be secrets, so they are derived from the caller's secret too: the seed is not enough to compute them.
 */
export function seededMinting(run: Pick<Run, 'seed' | 'firstAtMs'>, secret: string): Minting {
  let ids = 0
  let secrets = 0
  return {
    id(prefix) {
      ids += 1
      return deriveId(prefix, run, ids)
    },
    bytes(count) {
      secrets += 1
      return Buffer.from(hkdfSync('sha256', secret, run.seed, `mayfly bytes ${secrets}`, count))
    },
  }
}
