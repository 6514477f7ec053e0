import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { SharedPlaces } from '#libs/fair-share/shared-places.js'
import { addressGroup, plainAddress } from '#libs/remote-address/remote-address.js'

export interface SharedConnectionsOptions {
  max: number
  /** Called for each connection that is closed at once. */
  onDropped: () => void
}

/** The share of all connections beyond which none may stay open without a request. */
const CROWDED = 3 / 4
const CHECK_EVERY_MS = 1_000

/**
 * Bounds the connections open at once, and shares them out by remote address: when all are taken, the address with the
 * most gives up one without a request to an address with fewer. Those beyond are closed. While most are taken,
 * connections between two requests are closed too, since clients keep them open only to save time.
 */
export function shareConnections(server: Server, { max, onDropped }: SharedConnectionsOptions): void {
  const places = new SharedPlaces(max)
  /** The requests under way on each open connection; a connection that has had none yet is not in it. */
  const underWay = new Map<Socket, number>()
  server.on('request', ({ socket }: IncomingMessage, response: ServerResponse) => {
    underWay.set(socket, (underWay.get(socket) ?? 0) + 1)
    response.once('close', () => {
      const count = underWay.get(socket)
      if (count !== undefined) underWay.set(socket, count - 1)
    })
  })
  server.on('connection', (socket) => {
    const address = addressGroup(plainAddress(socket.remoteAddress))
    const leave = places.take([address], () => {
      const isIdle = (underWay.get(socket) ?? 0) === 0
      if (isIdle) socket.destroy()
      return isIdle
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
    if (places.taken <= max * CROWDED) return
    for (const [socket, count] of underWay) if (count === 0) socket.destroy()
  }, CHECK_EVERY_MS).unref()
  server.once('close', () => clearInterval(checking))
}
