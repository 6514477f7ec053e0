import type { FastifyRequest } from 'fastify'
import { Problem } from './problems.js'

/**
 * Runs work that a client waits for. The signal aborts when the client closes the connection, or only its sending side:
 * until something is written, the two look the same. Its reason is the answer to a client that closed only its sending
 * side.
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
