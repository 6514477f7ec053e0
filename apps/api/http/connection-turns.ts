import type { FastifyReply, FastifyRequest } from 'fastify'
import type { IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
import { isFramed } from './broken-requests.js'
import type { ReadTurns } from './read-turns.js'

/** Answers leave a connection one after the other, so that more at once only take memory. */
const MAX_UNDER_WAY = 16

interface Turns {
  underWay: number
  /** Has the connection read on. */
  readOn: () => void
  /** Whether a request has come that nothing may follow. */
  isEnding: boolean
}

/**
 * Bounds the requests under way on each connection. A client may send requests ahead without reading the answers
 * (RFC 9112, section 9.3.2): nothing more is read while so many are under way. A request behind one whose end is in doubt
 * is not begun.
 */
export class ConnectionTurns {
  private readonly bySocket = new WeakMap<Socket, Turns>()

  constructor(private readonly reads: ReadTurns) {}

  /** Resolves once the request may go on: at once, or never. */
  async take({ raw: request }: FastifyRequest, { raw: response }: FastifyReply): Promise<void> {
    const { socket } = request
    const turns = this.bySocket.get(socket) ?? { underWay: 0, readOn: () => undefined, isEnding: false }
    this.bySocket.set(socket, turns)
    if (turns.isEnding) await new Promise(() => undefined)
    if (isLast(request)) {
      turns.isEnding = true
      response.setHeader('connection', 'close')
    }
    turns.underWay += 1
    if (turns.underWay === MAX_UNDER_WAY) turns.readOn = this.reads.hold(socket)
    response.once('close', () => {
      if (turns.underWay === MAX_UNDER_WAY) turns.readOn()
      turns.underWay -= 1
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
