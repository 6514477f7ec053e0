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

/** No answer came in time; what was asked for may have been done, or be done yet. */
export class DeadlineError extends Error {
  override readonly name = 'DeadlineError'
}

/** What was asked for; rejects with DeadlineError if it does not come in time. */
export async function beforeDeadline<Result>(ms: number, asked: Promise<Result>): Promise<Result> {
  const late = Promise.withResolvers<never>()
  const timer = setTimeout(() => late.reject(new DeadlineError(`no answer within ${ms / 1_000} s`)), ms)
  try {
    return await Promise.race([asked, late.promise])
  } finally {
    clearTimeout(timer)
  }
}

/** Settles as what is wanted does; rejects with the signal's reason if that aborts first, and what is wanted goes on. */
export async function unlessAborted<Result>(wanted: Promise<Result>, signal: AbortSignal): Promise<Result> {
  const aborted = Promise.withResolvers<never>()
  const abort = () => aborted.reject(signal.reason)
  signal.addEventListener('abort', abort, { once: true })
  if (signal.aborted) abort()
  try {
    return await Promise.race([wanted, aborted.promise])
  } finally {
    signal.removeEventListener('abort', abort)
  }
}
