import { setTimeout as pause } from 'node:timers/promises'
import { LogUnavailableError } from '../event-log.js'

/**
 * What was asked of Kafka, or a LogUnavailableError that says what failed: also where no answer came in time.
 */
export async function within<Result>(ms: number, what: string, asked: Promise<Result>): Promise<Result> {
  const late = Promise.withResolvers<never>()
  const timer = setTimeout(() => late.reject(new Error(`no answer within ${ms / 1_000} s`)), ms)
  try {
    return await Promise.race([asked, late.promise])
  } catch (cause) {
    throw new LogUnavailableError(`${what}: ${messageOf(cause)}`, { cause })
  } finally {
    clearTimeout(timer)
  }
}

export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}

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
