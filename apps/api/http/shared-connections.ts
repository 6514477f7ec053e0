import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { SharedSlots } from '#libs/runtime/fair-share/shared-slots.js'
import { addressGroup, plainAddress } from '#libs/runtime/remote-address/remote-address.js'

export interface SharedConnectionsOptions {
  max: number
  /** Called for each connection that is closed at once. */
  onDropped: () => void
}

/** The share of all connections beyond which none may stay open without a request. */
const CROWDED = 3 / 4
const CHECK_EVERY_MS = 1_000
/** A request that takes longer is a wait or a stream, or its client does not read: it may be ended for another client. */
const LONG_REQUEST_MS = 5_000

/** The requests under way on a connection, and when the last of them began. */
interface UnderWay {
  count: number
  lastBegunMs: number
}

/**
 * Bounds the connections open at once, and shares them out by remote address: when all are taken, the address with the
 * most gives up one without a request, or with a long one, to an address with fewer. Those beyond are closed. While most
 * are taken, connections between two requests are closed too, since clients keep them open only to save time.
 */
export function shareConnections(server: Server, { max, onDropped }: SharedConnectionsOptions): void {
  const slots = new SharedSlots(max)
  /** The requests under way on each open connection; a connection that has had none yet is not in it. */
  const underWay = new Map<Socket, UnderWay>()
  server.on('request', ({ socket }: IncomingMessage, response: ServerResponse) => {
    const requests = underWay.get(socket) ?? { count: 0, lastBegunMs: 0 }
    requests.count += 1
    requests.lastBegunMs = performance.now()
    underWay.set(socket, requests)
    response.once('close', () => (requests.count -= 1))
  })
  server.on('connection', (socket) => {
    const address = addressGroup(plainAddress(socket.remoteAddress))
    const leave = slots.take([address], () => {
      const { count, lastBegunMs } = underWay.get(socket) ?? { count: 0, lastBegunMs: 0 }
      const mayEnd = count === 0 || performance.now() - lastBegunMs > LONG_REQUEST_MS
      if (mayEnd) socket.destroy()
      return mayEnd
    })
    if (leave !== null) {
      socket.once('close', () => {
        underWay.delete(socket)
        leave()
      })
    } else {
      socket.destroy()
      onDropped()
    }
  })
  const checking = setInterval(() => {
    if (slots.taken <= max * CROWDED) return
    for (const [socket, { count }] of underWay) if (count === 0) socket.destroy()
  }, CHECK_EVERY_MS).unref()
  server.once('close', () => clearInterval(checking))
}
