import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import { isIP, type Socket } from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { LRUCache } from 'lru-cache'
import { addressGroup, plainAddress } from '#libs/runtime/remote-address.js'
import { SharedSlots } from '#libs/runtime/fairness/shared-slots.js'
import { isFramed } from './malformed-requests.js'
import type { ReadTurns } from './read-turns.js'

/**
 * The address that a request comes from: that of the connection, or the one that the outermost trusted proxy gives in
 * X-Forwarded-For.
 */
export function remoteAddressOf({ ip, raw: { socket } }: FastifyRequest): string {
  const given = plainAddress(ip)
  return isIP(given) === 0 ? plainAddress(socket.remoteAddress) : given
}

/** What limits of requests without a key count by. */
export function clientAddress(request: FastifyRequest): string {
  return addressGroup(remoteAddressOf(request))
}

/** A connection sends one answer after the other, so more requests at once would only take memory. */
const MAX_OPEN = 16

interface Turns {
  open: number
  resume: () => void
  /** Whether a request has arrived after which no other is started. */
  isEnding: boolean
}

/**
 * Limits the open requests of each connection. A client may pipeline requests without reading the answers (RFC 9112,
 * section 9.3.2): at the limit, nothing more is read from the connection. After a request whose end is uncertain, no
 * other request of the connection is started.
 */
export class ConnectionTurns {
  private readonly bySocket = new WeakMap<Socket, Turns>()

  constructor(private readonly reads: ReadTurns) {}

  /** Resolves immediately if the request may continue; otherwise never. */
  async take({ raw: request }: FastifyRequest, { raw: response }: FastifyReply): Promise<void> {
    const { socket } = request
    const turns = this.bySocket.get(socket) ?? { open: 0, resume: () => undefined, isEnding: false }
    this.bySocket.set(socket, turns)
    if (turns.isEnding) await new Promise(() => undefined)
    if (isLast(request)) {
      turns.isEnding = true
      response.setHeader('connection', 'close')
    }
    turns.open += 1
    if (turns.open === MAX_OPEN) turns.resume = this.reads.hold(socket)
    response.once('close', () => {
      if (turns.open === MAX_OPEN) turns.resume()
      turns.open -= 1
    })
  }
}

/**
 * Whether the bytes after a request can't be trusted: a proxy may find its end elsewhere; or it requests an upgrade,
 * which is ignored (RFC 9110, section 7.8), but makes Node drop the rest of the same segment.
 */
function isLast(request: IncomingMessage): boolean {
  return request.headers.upgrade !== undefined || !isFramed(request)
}

/** Far more than a browser, a probe or a scraper sends. */
const PER_SECOND = 200
/** Requests that may arrive at once after a pause. */
const BURST = 100
const MAX_WAIT_MS = 10_000
const INTERVAL_MS = 1_000 / PER_SECOND
/** An answer counts as one more request for each of these. */
const BYTES_PER_REQUEST = 128 * 1024
/** These are apart, so that a proxy's health checks don't wait for the requests that it forwards. */
const PROBES: ReadonlySet<string> = new Set(['/healthz', '/readyz'])

/** What requests without a key are paced by, and take turns by. */
export function keylessOwner(request: FastifyRequest): string {
  const address = clientAddress(request)
  const { url } = request.routeOptions
  return url !== undefined && PROBES.has(url) ? `${address} probe` : address
}

/** Remote addresses that are remembered; an address that is forgotten starts over. */
const MAX_ADDRESSES = 20_000

/**
 * Paces the requests of each remote address that are not counted for a key: those without a valid key, and those that a
 * key was refused. Other requests are limited by the rate limit of their key.
 */
export class KeylessPace {
  /** When the next request of an address is due, on the clock of `performance.now()`. */
  private readonly due = new LRUCache<string, number>({ max: MAX_ADDRESSES })

  constructor(private readonly reads: ReadTurns) {}

  /**
   * Resolves when the request may continue, or never if its connection is closed by then. Until then nothing more is
   * read from the connection. Closes the connection if the request would wait longer than ten seconds.
   */
  async take(request: FastifyRequest): Promise<void> {
    const { socket } = request.raw
    const waitMs = this.waitMs(keylessOwner(request))
    if (waitMs > MAX_WAIT_MS) socket.destroy()
    else if (waitMs > 0) {
      const resume = this.reads.hold(socket)
      await pause(waitMs, undefined, { ref: false })
      resume()
    }
    if (socket.destroyed) await new Promise(() => undefined)
  }

  /** Counts the size of the answer to a request, so that its client waits longer before the next one. */
  charge(request: FastifyRequest, bytes: number): void {
    const requests = Math.floor(bytes / BYTES_PER_REQUEST)
    if (requests === 0) return
    const address = clientAddress(request)
    this.due.set(address, this.dueMs(address) + requests * INTERVAL_MS)
  }

  private waitMs(client: string): number {
    const dueMs = this.dueMs(client)
    const waitMs = dueMs - performance.now()
    if (waitMs <= MAX_WAIT_MS) this.due.set(client, dueMs + INTERVAL_MS)
    return waitMs
  }

  private dueMs(client: string): number {
    return Math.max(this.due.get(client) ?? 0, performance.now() - BURST * INTERVAL_MS)
  }
}

/** If more than this share of the connections is open, those without a request are closed. */
const CROWDED = 3 / 4
const CHECK_EVERY_MS = 1_000
/** A longer request is a wait or a stream, or its client does not read. It may be ended for another client. */
const LONG_REQUEST_MS = 5_000

/**
 * Limits the open connections, and shares them among remote addresses. At the limit, an address with fewer connections
 * gets the slot of one that has no request, or a long one, from the address with the most; otherwise the new connection
 * is closed, and `onDropped` is called. If most slots are taken, connections between two requests are closed too, since
 * clients keep them open only to save time.
 */
export function shareConnections(server: Server, max: number, onDropped: () => void): void {
  const slots = new SharedSlots(max)
  /** The open requests of each connection that has had a request, and when the last one started. */
  const requestsBySocket = new Map<Socket, { open: number; lastStartedMs: number }>()
  server.on('request', ({ socket }: IncomingMessage, response: ServerResponse) => {
    const requests = requestsBySocket.get(socket) ?? { open: 0, lastStartedMs: 0 }
    requests.open += 1
    requests.lastStartedMs = performance.now()
    requestsBySocket.set(socket, requests)
    response.once('close', () => (requests.open -= 1))
  })
  server.on('connection', (socket) => {
    const address = addressGroup(plainAddress(socket.remoteAddress))
    const release = slots.take([address], () => {
      const requests = requestsBySocket.get(socket)
      const mayEnd = !requests?.open || performance.now() - requests.lastStartedMs > LONG_REQUEST_MS
      if (mayEnd) socket.destroy()
      return mayEnd
    })
    if (release === null) {
      socket.destroy()
      onDropped()
      return
    }
    socket.once('close', () => {
      requestsBySocket.delete(socket)
      release()
    })
  })
  const checking = setInterval(() => {
    if (slots.taken <= max * CROWDED) return
    for (const [socket, { open }] of requestsBySocket) if (open === 0) socket.destroy()
  }, CHECK_EVERY_MS).unref()
  server.once('close', () => clearInterval(checking))
}
