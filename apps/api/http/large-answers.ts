import { Readable } from 'node:stream'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { LARGE_BYTES } from './budgets.js'
import type { StalledReaders } from './stalled-readers.js'

const PIECE_BYTES = 64 * 1024
/** Of a large answer, in the time after which a client counts as stalled. */
const MIN_TAKEN_BYTES = 1024 * 1024

/**
 * A large body as a stream of pieces, so that it can be seen whether the client reads it: one that does not, or
 * hardly does, is disconnected. Anything else stays as it is.
 */
export function sentInPieces(
  { raw: { socket } }: FastifyRequest,
  reply: FastifyReply,
  payload: unknown,
  stalled: StalledReaders,
): unknown {
  if (!(typeof payload === 'string' || Buffer.isBuffer(payload)) || payload.length <= LARGE_BYTES)
    return payload
  const body = typeof payload === 'string' ? Buffer.from(payload) : payload
  void reply.header('content-length', body.length)
  const unwatch = stalled.watch(socket, () => socket.destroy(), MIN_TAKEN_BYTES)
  reply.raw.once('close', unwatch)
  if (reply.raw.closed) unwatch()
  return Readable.from(piecesOf(body), { objectMode: false })
}

function* piecesOf(body: Buffer): Generator<Buffer> {
  for (let at = 0; at < body.length; at += PIECE_BYTES) yield body.subarray(at, at + PIECE_BYTES)
}
