import type { FastifyRequest } from 'fastify'
import { Problem } from './problems.js'

/**
 * Runs work that a client waits for; the signal aborts once the client has closed its connection, or its half of it:
 * who hangs up does no more than that, until something is written to it. Its reason is the answer to a client that has
 * closed its half alone.
 */
export async function untilDeparture<Result>(
  { raw: { socket } }: FastifyRequest,
  work: (departure: AbortSignal) => Promise<Result>,
): Promise<Result> {
  const departing = new AbortController()
  const depart = () => departing.abort(hungUp())
  if (socket.readableEnded || socket.destroyed) depart()
  socket.once('end', depart).once('close', depart)
  try {
    return await work(departing.signal)
  } finally {
    socket.off('end', depart).off('close', depart)
  }
}

function hungUp(): Problem {
  return new Problem('invalid-request', {
    detail:
      'The client closed its side of the connection before the answer was ready: keep it open until then.',
  })
}
