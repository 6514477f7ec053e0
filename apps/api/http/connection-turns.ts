import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Socket } from 'node:net'

/** Answers leave a connection one after the other, so that more at once only take memory. */
const MAX_UNDER_WAY = 16
/** Far beyond what any client sends ahead. */
const MAX_WAITING = 1_000

interface Turns {
  underWay: number
  waiting: (() => void)[]
}

/**
 * Bounds the requests under way on each connection. A client may send requests ahead without reading the answers
 * (RFC 9112, section 9.3.2), and Node hands them over as they arrive. Those beyond the bound wait, in order; a
 * connection with too many waiting is closed. If the connection closes, nothing that waits is begun.
 */
export class ConnectionTurns {
  private readonly bySocket = new WeakMap<Socket, Turns>()

  /** Resolves once the request may go on, and never if its connection has closed. */
  async take({ raw: { socket } }: FastifyRequest, { raw: response }: FastifyReply): Promise<void> {
    const turns = this.bySocket.get(socket) ?? { underWay: 0, waiting: [] }
    this.bySocket.set(socket, turns)
    if (turns.underWay < MAX_UNDER_WAY) turns.underWay += 1
    else {
      if (turns.waiting.length >= MAX_WAITING) socket.destroy()
      await new Promise<void>((resolve) => turns.waiting.push(resolve))
    }
    response.once('close', () => {
      const next = socket.destroyed ? undefined : turns.waiting.shift()
      if (next === undefined) turns.underWay -= 1
      else next()
    })
  }
}
