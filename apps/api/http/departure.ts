import type { FastifyRequest } from 'fastify'

/**
 * Runs work that a client waits for; the signal aborts once the client has closed its connection, or its half of it:
 * who hangs up does no more than that, until something is written to it.
 */
export async function untilDeparture<Result>(
  { raw: { socket } }: FastifyRequest,
  work: (departure: AbortSignal) => Promise<Result>,
): Promise<Result> {
  const departing = new AbortController()
  const depart = () => departing.abort()
  if (socket.readableEnded || socket.destroyed) depart()
  socket.once('end', depart).once('close', depart)
  try {
    return await work(departing.signal)
  } finally {
    socket.off('end', depart).off('close', depart)
  }
}
