import type { Server } from 'node:http'
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
 * Bounds the connections open at once, and shares them out by remote address: one address alone comes to half of them.
 * Those beyond are closed. While most are taken, connections between two requests are closed too, since clients keep
 * them open only to save time.
 */
export function shareConnections(server: Server, { max, onDropped }: SharedConnectionsOptions): void {
  const places = new SharedPlaces(max)
  server.on('connection', (socket) => {
    const leave = places.take(addressGroup(plainAddress(socket.remoteAddress)))
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
