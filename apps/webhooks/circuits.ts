import { LRUCache } from 'lru-cache'
import type { WebhookId } from '#libs/domain/ids/typeid.js'

/** Failures in a row that open a circuit. */
const OPENS_AFTER = 5
const PAUSE_MS = { first: 5_000, most: 300_000 }
/** Endpoints remembered. */
const MAX_CIRCUITS = 50_000

interface Circuit {
  failures: number
  openUntilMs: number
  pauseMs: number
}

/**
 * Endpoints that fail again and again are tried one attempt at a time, ever less often, so that what is due to a dead
 * one takes no slots from others. In this process's memory alone: each learns by itself.
 */
export class Circuits {
  private readonly circuits = new LRUCache<WebhookId, Circuit>({ max: MAX_CIRCUITS })

  /** How many attempts may be under way: `most` where all is well. */
  capacityOf(id: WebhookId, most: number, nowMs: number): number {
    const circuit = this.circuits.get(id)
    if (circuit === undefined || circuit.failures < OPENS_AFTER) return most
    return nowMs < circuit.openUntilMs ? 0 : 1
  }

  succeeded(id: WebhookId): void {
    this.circuits.delete(id)
  }

  failed(id: WebhookId, nowMs: number): void {
    const circuit = this.circuits.get(id) ?? { failures: 0, openUntilMs: 0, pauseMs: PAUSE_MS.first }
    // What was under way when it opened says nothing new.
    if (nowMs < circuit.openUntilMs) return
    const { failures, pauseMs } = circuit
    const isOpen = failures + 1 >= OPENS_AFTER
    this.circuits.set(id, {
      failures: failures + 1,
      openUntilMs: isOpen ? nowMs + pauseMs : 0,
      pauseMs: isOpen ? Math.min(pauseMs * 2, PAUSE_MS.most) : pauseMs,
    })
  }
}
