import { setImmediate as nextLoopTurn } from 'node:timers/promises'
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Release } from '#libs/runtime/fairness/budget.js'
import { mainThread } from '#libs/runtime/fairness/time-shares.js'
import { principalOf } from '../access/principal.js'
import { keylessOwner } from './connection-limits.js'

interface Turn {
  take: () => Promise<Release>
  /** Null while it is not the request's turn. */
  release: Release | null
  isClosed: boolean
}

const TURN = Symbol('turn')
type RequestWithTurn = FastifyRequest & { [TURN]?: Turn }

/**
 * Every request takes a turn before its handler runs: by account, or by remote address if it has no key
 * (docs/decisions/requests-take-turns.md). Resolves when it is the caller's turn, which lasts until the answer is sent, or
 * `endTurn`. Never if the client leaves.
 */
export async function takeTurn(request: RequestWithTurn, { raw: response }: FastifyReply): Promise<void> {
  const owner = principalOf(request)?.accountId ?? keylessOwner(request)
  const take = () => mainThread.take(owner)
  const turn: Turn = { take, release: await take(), isClosed: response.closed }
  request[TURN] = turn
  response.once('close', () => {
    turn.isClosed = true
    endTurn(request)
  })
  if (!turn.isClosed) return
  endTurn(request)
  await new Promise(() => undefined)
}

/** Must be called if the request begins to wait for something that may take long, so that others of its account run. */
export function endTurn(request: RequestWithTurn): void {
  const turn = request[TURN]
  turn?.release?.()
  if (turn !== undefined) turn.release = null
}

/** Must be called after every few milliseconds of long work: resolves when it is the turn of the request again. */
export function nextTurn(request: RequestWithTurn): Promise<void> {
  return outsideTurn(request, nextLoopTurn)
}

/** Runs work that waits for other requests, and resolves when it is the turn of the request again. */
export async function outsideTurn<Result>(
  request: RequestWithTurn,
  work: () => Promise<Result>,
): Promise<Result> {
  const turn = request[TURN]
  // A turn that has ended does not begin again, but work that goes on without its client still waits for its share.
  if (turn === undefined || (turn.release === null && !turn.isClosed)) return work()
  endTurn(request)
  try {
    return await work()
  } finally {
    turn.release = await turn.take()
    if (turn.isClosed) endTurn(request)
  }
}
