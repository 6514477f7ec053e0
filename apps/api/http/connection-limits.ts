import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { LRUCache } from 'lru-cache'
import { addressGroup, plainAddress } from '#libs/runtime/remote-address.js'
import { SharedSlots } from '#libs/runtime/fair-share.js'
import { isFramed } from './access-log.js'
import type { ReadTurns } from './read-turns.js'

/** Answers leave a connection one after the other, so that more at once only take memory. */
const MAX_UNDER_WAY = 16

interface Turns {
  underWay: number
  /** Has the connection read on. */
  readOn: () => void
  /** Whether a request has come after which no other may be started. */
  isEnding: boolean
}

/**
 * Bounds the requests under way on each connection. A client may send requests ahead without reading the answers
 * (RFC 9112, section 9.3.2): nothing more is read while so many are under way. A request after one whose end is in doubt
 * is not started.
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
 * Whether nothing after a request can be trusted: a proxy may find another end of it, or it asks for an upgrade, which is
 * ignored (RFC 9110, section 7.8), but makes Node drop what came in the same segment.
 */
function isLast(request: IncomingMessage): boolean {
  return request.headers.upgrade !== undefined || !isFramed(request)
}

/** Far more than a browser, a probe or a scraper asks for. */
const PER_SECOND = 200
/** What may come at once after a pause. */
const BURST = 100
const MAX_WAIT_MS = 10_000
const INTERVAL_MS = 1_000 / PER_SECOND
/** These are paced separately, so that a proxy's health checks don't wait for the requests that it passes on. */
const PROBES: ReadonlySet<string> = new Set(['/healthz', '/readyz'])
/** Remote addresses that are remembered; an address that is forgotten starts over. */
const MAX_ADDRESSES = 20_000

/**
 * Spaces out the requests of each remote address that count for no key: those without one, and those refused to one.
 * Those of a key are bounded by its rate limit.
 */
export class KeylessPace {
  /** On the clock of `performance.now()`, when the next request of an address is due. */
  private readonly due = new LRUCache<string, number>({ max: MAX_ADDRESSES })

  constructor(private readonly reads: ReadTurns) {}

  /**
   * Resolves when the request may go on, and never if its connection is closed by then. Nothing more is read from the
   * connection meanwhile. Closes it if that would take more than ten seconds.
   */
  async take({ raw: { socket }, routeOptions: { url } }: FastifyRequest): Promise<void> {
    const address = addressGroup(plainAddress(socket.remoteAddress))
    const waitMs = this.waitMs(url !== undefined && PROBES.has(url) ? `${address} probe` : address)
    if (waitMs > MAX_WAIT_MS) socket.destroy()
    else if (waitMs > 0) {
      const readOn = this.reads.hold(socket)
      await pause(waitMs, undefined, { ref: false })
      readOn()
    }
    if (socket.destroyed) await new Promise(() => undefined)
  }

  private waitMs(client: string): number {
    const nowMs = performance.now()
    const earliestMs = nowMs - BURST * INTERVAL_MS
    const dueMs = Math.max(this.due.get(client) ?? earliestMs, earliestMs)
    const waitMs = dueMs - nowMs
    if (waitMs <= MAX_WAIT_MS) this.due.set(client, dueMs + INTERVAL_MS)
    return waitMs
  }
}

/** The share of all connections beyond which none may stay open without a request. */
const CROWDED = 3 / 4
const CHECK_EVERY_MS = 1_000
/** A request that takes longer is a wait or a stream, or its client does not read: it may be ended for another client. */
const LONG_REQUEST_MS = 5_000

/**
 * Bounds the connections open at once, and shares them out by remote address: when all are taken, the address with the
 * most gives up one without a request, or with a long one, to an address with fewer. Those beyond are closed. While most
 * are taken, connections between two requests are closed too, since clients keep them open only to save time. `onDropped`
 * is called for each connection that is closed at once.
 */
export function shareConnections(server: Server, max: number, onDropped: () => void): void {
  const slots = new SharedSlots(max)
  /** The requests under way on each open connection that has had any, and when the last of them began. */
  const underWay = new Map<Socket, { count: number; lastBegunMs: number }>()
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
      const requests = underWay.get(socket)
      const mayEnd = !requests?.count || performance.now() - requests.lastBegunMs > LONG_REQUEST_MS
      if (mayEnd) socket.destroy()
      return mayEnd
    })
    if (leave === null) {
      socket.destroy()
      onDropped()
      return
    }
    socket.once('close', () => {
      underWay.delete(socket)
      leave()
    })
  })
  const checking = setInterval(() => {
    if (slots.taken <= max * CROWDED) return
    for (const [socket, { count }] of underWay) if (count === 0) socket.destroy()
  }, CHECK_EVERY_MS).unref()
  server.once('close', () => clearInterval(checking))
}
