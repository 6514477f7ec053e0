import type { WebhookId } from '#libs/domain/ids/typeid.js'
import { largeCache } from '#libs/runtime/large-cache.js'

/** Failures in a row. */
const OPENS_AFTER = 5
const PAUSE_MS = { first: 5_000, max: 300_000 }
/** How many webhooks are remembered. */
const MAX_CIRCUITS = 50_000

interface Circuit {
  failures: number
  openUntilMs: number
  pauseMs: number
}

/**
 * Circuit breakers: the endpoint of a webhook that keeps failing gets one attempt at a time, with growing pauses, so
 * that it takes no slots from others. Each process keeps its own circuits, in memory.
 */
export class Circuits {
  private readonly circuits = largeCache<WebhookId, Circuit>(MAX_CIRCUITS)

  /** How many attempts to the webhook may be in progress: `max` while its circuit is closed. */
  capacityOf(id: WebhookId, max: number, nowMs: number): number {
    const circuit = this.circuits.get(id)
    if (circuit === undefined || circuit.failures < OPENS_AFTER) return max
    return nowMs < circuit.openUntilMs ? 0 : 1
  }

  succeeded(id: WebhookId): void {
    this.circuits.delete(id)
  }

  failed(id: WebhookId, nowMs: number): void {
    const circuit = this.circuits.get(id) ?? { failures: 0, openUntilMs: 0, pauseMs: PAUSE_MS.first }
    // An attempt that was in progress when the circuit opened does not count.
    if (nowMs < circuit.openUntilMs) return
    const { failures, pauseMs } = circuit
    const isOpen = failures + 1 >= OPENS_AFTER
    this.circuits.set(id, {
      failures: failures + 1,
      openUntilMs: isOpen ? nowMs + pauseMs : 0,
      pauseMs: isOpen ? Math.min(pauseMs * 2, PAUSE_MS.max) : pauseMs,
    })
  }
}
