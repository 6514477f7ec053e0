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
  const underWay = new WeakMap<Socket, number>()
  server.on('request', ({ socket }: IncomingMessage, response: ServerResponse) => {
    underWay.set(socket, (underWay.get(socket) ?? 0) + 1)
    response.once('close', () => underWay.set(socket, (underWay.get(socket) ?? 1) - 1))
  })
  server.on('connection', (socket) => {
    const address = addressGroup(plainAddress(socket.remoteAddress))
    const leave = places.take([address], () => {
      const isIdle = (underWay.get(socket) ?? 0) === 0
      if (isIdle) socket.destroy()
      return isIdle
    })
    if (leave !== null) {
      socket.once('close', leave)
    } else {
      socket.destroy()
      onDropped()
    }
  })
  const checking = setInterval(() => {
    if (places.taken > max * CROWDED) server.closeIdleConnections()
  }, CHECK_EVERY_MS).unref()
  server.once('close', () => clearInterval(checking))
}
