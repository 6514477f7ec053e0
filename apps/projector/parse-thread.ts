import { setTimeout as pause } from 'node:timers/promises'
import { Worker } from 'node:worker_threads'
import type { ParseRequest, ParseResult } from './parse-task.js'

/** The worker data of a parsing thread. */
export interface ParseThreadData {
  /** Memory shared with the main thread. PROGRESS names its elements. */
  progress: Float64Array
  /** The nice value of the thread, from 0 to 19: higher values have lower priority. */
  niceness: number
}

export const PROGRESS = {
  /** The index of the mail that the thread is parsing. */
  index: 0,
  /** The thread's CPU time when it started that mail; NaN before the first mail. */
  startMs: 1,
  /** 1 if the thread must stop after that mail. */
  mustStop: 2,
} as const

/** Parsing has a lower priority than accepting mail, because accepted mail can wait. */
const NICENESS = { usual: 5, urgent: 0 } as const

export type ThreadKind = keyof typeof NICENESS

/**
 * A thread that parses mails. It reports which mail it is parsing and how much CPU time that mail has taken, which
 * general thread pools don't, so that one mail can be abandoned without the others of its job.
 */
export class ParseThread {
  private readonly progress = new Float64Array(
    new SharedArrayBuffer(Object.keys(PROGRESS).length * Float64Array.BYTES_PER_ELEMENT),
  )
  private readonly worker: Worker
  private running: {
    onResults: (results: ParseResult[]) => void
    resolve: (value: undefined) => void
    reject: (error: Error) => void
  } | null = null
  private lost: Error | null = null

  /** `onLost` is called if the thread ends by itself. */
  constructor(
    readonly kind: ThreadKind,
    memoryMib: number,
    onLost: (error: Error) => void,
  ) {
    const data: ParseThreadData = { progress: this.progress, niceness: NICENESS[kind] }
    this.worker = new Worker(new URL(import.meta.resolve('#apps/projector/parse-worker.js')), {
      workerData: data,
      resourceLimits: { maxOldGenerationSizeMb: memoryMib },
    })
    this.worker.on('message', (results: ParseResult[] | null) => {
      if (results === null) this.running?.resolve(undefined)
      else this.running?.onResults(results)
    })
    const lose = (error: Error) => {
      if (this.lost !== null) return
      this.lost = error
      this.running?.reject(error)
      onLost(error)
    }
    this.worker.on('error', lose)
    this.worker.on('exit', (code) => lose(new Error(`a parsing thread ended with ${code}`)))
  }

  /** The index of the mail that the thread is parsing. */
  get index(): number {
    return this.progress[PROGRESS.index] ?? 0
  }

  /**
   * Resolves once the mails are parsed, or skipped because of `stop`. Without mails, resolves once the thread is warmed
   * up. Rejects if the thread is lost.
   */
  async run(requests: readonly ParseRequest[], onResults: (results: ParseResult[]) => void): Promise<void> {
    this.throwIfLost()
    this.progress.fill(0)
    this.progress[PROGRESS.startMs] = NaN
    const { promise, resolve, reject } = Promise.withResolvers<undefined>()
    this.running = { onResults, resolve, reject }
    this.worker.postMessage(requests)
    await promise.finally(() => (this.running = null))
    // `end` may have been called just when the thread had finished.
    this.throwIfLost()
  }

  private throwIfLost(): void {
    if (this.lost !== null) throw this.lost
  }

  /** Makes the thread skip the mails after the current one. */
  stop(): void {
    this.progress[PROGRESS.mustStop] = 1
  }

  /** The CPU time that the current mail has taken; null if there is none, or the thread has ended. */
  async cpuMs(): Promise<number | null> {
    try {
      const { user, system } = await this.worker.cpuUsage()
      const startMs = this.progress[PROGRESS.startMs] ?? NaN
      return Number.isNaN(startMs) ? null : (user + system) / 1_000 - startMs
    } catch {
      // The thread has just ended: its run rejects.
      return null
    }
  }

  /** Makes `run` reject at once. Resolves once the thread has ended, which takes time on a busy machine. */
  async end(): Promise<void> {
    this.lost ??= new ThreadEndedError('the parsing thread was ended')
    this.running?.reject(this.lost)
    await this.worker.terminate()
  }
}

class ThreadEndedError extends Error {
  override readonly name = 'ThreadEndedError'
}

export interface ParseThreadsOptions {
  /** The number of usual threads. One more is for urgent mail. */
  threads: number
  memoryMib: number
  /** Called with the error of a thread that ended by itself. */
  onThreadLost: (error: unknown) => void
}

/** The pause between attempts to start a thread. */
const RETRY_MS = 500

/**
 * The usual threads and one for urgent mail. They start when they are first needed, because each takes about 0.1 s of
 * CPU time and 20 MiB of memory. Threads are warmed up before use.
 */
export class ParseThreads {
  private readonly all: Record<ThreadKind, Set<ParseThread>> = { usual: new Set(), urgent: new Set() }
  private readonly free: Record<ThreadKind, ParseThread[]> = { usual: [], urgent: [] }
  private readonly starting = new Set<ThreadKind>()
  private isClosed = false

  constructor(
    private readonly options: ParseThreadsOptions,
    private readonly onFree: () => void,
  ) {}

  /** The threads that have no mails, including those that have not started yet. */
  get freeCount(): number {
    const { all, free, starting } = this
    const running = all.usual.size + all.urgent.size - starting.size
    const busy = running - free.usual.length - free.urgent.length
    return this.options.threads + 1 - busy
  }

  /** Whether a usual thread has been started and has not ended. */
  get hasStarted(): boolean {
    return this.all.usual.size > 0
  }

  hasFree(kind: ThreadKind): boolean {
    return this.free[kind].length > 0
  }

  /** Starts one more thread if there may be more, one at a time. It is free once it is warmed up. */
  startAnother(kind: ThreadKind): void {
    const max = kind === 'usual' ? this.options.threads : 1
    if (this.all[kind].size < max && !this.starting.has(kind)) void this.start(kind)
  }

  /** Null if none is free. */
  take(kind: ThreadKind): ParseThread | null {
    return this.free[kind].pop() ?? null
  }

  giveBack(thread: ParseThread): void {
    this.free[thread.kind].push(thread)
  }

  /** Ends a thread that was taken, if it has not ended yet. Another one starts when it is needed. */
  drop(thread: ParseThread): void {
    this.all[thread.kind].delete(thread)
    void thread.end()
  }

  async close(): Promise<void> {
    this.isClosed = true
    await Promise.all([...this.all.usual, ...this.all.urgent].map((thread) => thread.end()))
  }

  private async start(kind: ThreadKind): Promise<void> {
    this.starting.add(kind)
    while (!this.isClosed) {
      const thread = new ParseThread(kind, this.options.memoryMib, this.options.onThreadLost)
      this.all[kind].add(thread)
      try {
        await thread.run([], () => undefined)
        this.starting.delete(kind)
        this.free[kind].push(thread)
        this.onFree()
        return
      } catch (error) {
        await thread.end()
        if (!(error instanceof ThreadEndedError)) await pause(RETRY_MS)
        this.all[kind].delete(thread)
      }
    }
  }
}
