import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Release } from '#libs/runtime/fairness/budget.js'
import { TimeShares } from '#libs/runtime/fairness/time-shares.js'
import { principalOf } from '../access/principal.js'
import { keylessOwner } from './connection-limits.js'

const TURN = Symbol('turn')
type RequestWithTurn = FastifyRequest & { [TURN]?: Release }

/**
 * Every request takes a turn before its handler runs: by account, or by remote address if it has no key
 * (docs/decisions/requests-take-turns.md).
 */
export class RequestTurns {
  private readonly shares = new TimeShares()

  /** Resolves when it is the caller's turn, which lasts until the answer is sent, or `endTurn`. Never if the client leaves. */
  async take(request: RequestWithTurn, { raw: response }: FastifyReply): Promise<void> {
    const release = await this.shares.take(principalOf(request)?.accountId ?? keylessOwner(request))
    request[TURN] = release
    response.once('close', release)
    if (!response.closed) return
    release()
    await new Promise(() => undefined)
  }
}

/** Must be called if the request begins to wait for something that may take long, so that others of its account run. */
export function endTurn(request: RequestWithTurn): void {
  request[TURN]?.()
}
