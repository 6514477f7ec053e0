import { randomBytes } from 'node:crypto'
import { createParamDecorator, type ExecutionContext } from '@nestjs/common'
import type { FastifyRequest } from 'fastify'
import { mintId } from '#libs/domain/ids/mint.js'
import type { Id } from '#libs/domain/ids/typeid.js'

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
