import type { FastifyReply, FastifyRequest } from 'fastify'
import type { IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
import { isFramed } from './broken-requests.js'

/** Answers leave a connection one after the other, so that more at once only take memory. */
const MAX_UNDER_WAY = 16
/** Far beyond what any client sends ahead. */
const MAX_WAITING = 1_000

interface Turns {
  underWay: number
  waiting: (() => void)[]
  /** Whether a request has come that nothing may follow. */
  isEnding: boolean
}

/**
 * Bounds the requests under way on each connection. A client may send requests ahead without reading the answers
 * (RFC 9112, section 9.3.2), and Node hands them over as they arrive. Those beyond the bound wait, in order; a
 * connection with too many waiting is closed. Requests that still wait when the connection closes are not begun, nor
 * are those behind one whose end is in doubt.
 */
export class ConnectionTurns {
  private readonly bySocket = new WeakMap<Socket, Turns>()

  /** Resolves once the request may go on, and never if its connection has closed. */
  async take({ raw: request }: FastifyRequest, { raw: response }: FastifyReply): Promise<void> {
    const { socket } = request
    const turns = this.bySocket.get(socket) ?? { underWay: 0, waiting: [], isEnding: false }
    this.bySocket.set(socket, turns)
    const { isEnding } = turns
    if (isLast(request)) {
      turns.isEnding = true
      response.setHeader('connection', 'close')
    }
    if (!isEnding && turns.underWay < MAX_UNDER_WAY) turns.underWay += 1
    else {
      if (turns.waiting.length >= MAX_WAITING) socket.destroy()
      await new Promise<void>((resolve) => turns.waiting.push(isEnding ? () => undefined : resolve))
    }
    response.once('close', () => {
      const next = socket.destroyed ? undefined : turns.waiting.shift()
      if (next === undefined) turns.underWay -= 1
      else next()
    })
  }
}

/**
 * Whether nothing behind a request can be believed: others on the way may see its end elsewhere, or it asks for an
 * upgrade, which is ignored (RFC 9110, section 7.8), but makes Node drop what came in the same segment.
 */
function isLast(request: IncomingMessage): boolean {
  return request.headers.upgrade !== undefined || !isFramed(request)
}
