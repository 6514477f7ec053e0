import { setTimeout as pause } from 'node:timers/promises'

/** Ends early, and well, where the signal aborts. */
export async function pauseUntilAborted(ms: number, signal: AbortSignal): Promise<void> {
  await pause(ms, undefined, { signal }).catch((error: unknown) => {
    if (!signal.aborted) throw error
  })
}

/** Pauses that double from the first to the most, until reset. */
export class GrowingPause {
  private ms: number

  constructor(private readonly bounds: { firstMs: number; mostMs: number }) {
    this.ms = bounds.firstMs
  }

  reset(): void {
    this.ms = this.bounds.firstMs
  }

  async wait(signal: AbortSignal): Promise<void> {
    const ms = this.ms
    this.ms = Math.min(ms * 2, this.bounds.mostMs)
    await pauseUntilAborted(ms, signal)
  }
}
