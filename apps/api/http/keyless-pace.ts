import { setTimeout as pause } from 'node:timers/promises'
import type { FastifyRequest } from 'fastify'
import { LRUCache } from 'lru-cache'
import { addressGroup, plainAddress } from '#libs/runtime/remote-address/remote-address.js'
import type { ReadTurns } from './read-turns.js'

/** Far more than a browser, a probe or a scraper asks for. */
const PER_SECOND = 200
/** What may come at once after a pause. */
const BURST = 100
const MAX_WAIT_MS = 10_000
const INTERVAL_MS = 1_000 / PER_SECOND
/** They have a pace of their own, so that a proxy's health checks don't wait for what it passes on. */
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
