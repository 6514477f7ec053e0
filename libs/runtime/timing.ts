import { setTimeout as pause } from 'node:timers/promises'
import { NamedError } from './errors.js'

/*
 * Waiting with a bound, and work that repeats or is shared: pauses, backoff, deadlines, periodic tasks and shared runs.
 */

/** Resolves after the pause, or as soon as the signal aborts. */
export async function pauseUntilAborted(ms: number, signal: AbortSignal): Promise<void> {
  await pause(ms, undefined, { signal }).catch((error: unknown) => {
    if (!signal.aborted) throw error
  })
}

/** Exponential backoff: each wait is twice as long as the one before, up to a maximum, until `reset`. */
export class Backoff {
  private ms: number

  constructor(private readonly bounds: { firstMs: number; maxMs: number }) {
    this.ms = bounds.firstMs
  }

  reset(): void {
    this.ms = this.bounds.firstMs
  }

  /** Returns early if the signal aborts. */
  async wait(signal: AbortSignal): Promise<void> {
    const ms = this.ms
    this.ms = Math.min(ms * 2, this.bounds.maxMs)
    await pauseUntilAborted(ms, signal)
  }
}

/** The deadline passed before the result arrived. The work goes on, and may still succeed. */
export class DeadlineError extends NamedError {}

/** Settles as the promise does. Rejects with DeadlineError if that takes longer than `ms`. */
export async function beforeDeadline<Result>(ms: number, work: Promise<Result>): Promise<Result> {
  const late = Promise.withResolvers<never>()
  const reject = () => late.reject(new DeadlineError(`no answer within ${ms / 1_000} s`))
  // If the process was busy, the answer may wait in its socket. Sockets are read between timers and setImmediate.
  const timer = setTimeout(() => setImmediate(reject), ms)
  try {
    return await Promise.race([work, late.promise])
  } finally {
    clearTimeout(timer)
  }
}

/** Settles as the promise does. If the signal aborts first, rejects with its reason; the work goes on. */
export async function unlessAborted<Result>(work: Promise<Result>, signal: AbortSignal): Promise<Result> {
  const aborted = Promise.withResolvers<never>()
  const abort = () => aborted.reject(signal.reason)
  signal.addEventListener('abort', abort, { once: true })
  if (signal.aborted) abort()
  try {
    return await Promise.race([work, aborted.promise])
  } finally {
    signal.removeEventListener('abort', abort)
  }
}

export interface PeriodicTaskOptions {
  /** Must not reject. The signal aborts when the task is being stopped. */
  work: (signal: AbortSignal) => Promise<void>
  /** Pause between the end of one run and the start of the next. */
  everyMs: number
  /** Pause before the first run; 0 by default. */
  firstAfterMs?: number
}

/** Runs the same work again and again, never twice at the same time. */
export class PeriodicTask {
  private readonly stopping = new AbortController()
  private loop: Promise<void> = Promise.resolve()

  constructor(private readonly options: PeriodicTaskOptions) {}

  start(): void {
    this.loop = this.run()
  }

  /** Resolves once the run in progress has ended. */
  async stop(): Promise<void> {
    this.stopping.abort()
    await this.loop
  }

  private async run(): Promise<void> {
    const { work, everyMs, firstAfterMs = 0 } = this.options
    const { signal } = this.stopping
    if (firstAfterMs > 0) await pauseUntilAborted(firstAfterMs, signal)
    while (!signal.aborted) {
      await work(signal)
      await pauseUntilAborted(everyMs, signal)
    }
  }
}

/**
 * Gives each caller the result of a run that started after its call, never of one already in progress. All waiting
 * callers share the next run. Runs don't overlap and start at least `apartMs` apart, so any number of callers is cheap.
 */
export class SharedRun<Result> {
  private next: Promise<Result> | null = null
  private inProgress: Promise<unknown> = Promise.resolve()
  private startedAtMs = -Infinity

  constructor(
    private readonly work: () => Promise<Result>,
    private readonly apartMs: number,
  ) {}

  get(): Promise<Result> {
    this.next ??= this.start()
    return this.next
  }

  /** Resolves once no run is in progress or waiting to start. */
  async idle(): Promise<void> {
    while (this.next !== null) await Promise.allSettled([this.next])
    await Promise.allSettled([this.inProgress])
  }

  private async start(): Promise<Result> {
    await Promise.allSettled([this.inProgress])
    // Timers count from the start of the event loop's turn, so one may fire too early.
    while (this.remainingMs > 0) await pause(Math.ceil(this.remainingMs))
    this.next = null
    const run = this.work()
    this.startedAtMs = performance.now()
    this.inProgress = run
    return run
  }

  private get remainingMs(): number {
    return this.startedAtMs + this.apartMs - performance.now()
  }
}
