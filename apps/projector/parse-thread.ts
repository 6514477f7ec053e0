import { setTimeout as pause } from 'node:timers/promises'
import { Worker } from 'node:worker_threads'
import type { ParseOrder, ParseResult } from './parse-task.js'

/** What a parsing thread is started with. */
export interface ParseThreadData {
  /** Shared with the thread's owner, while the thread is busy too. Its slots are those of PROGRESS. */
  progress: Float64Array
  /** Its priority for the operating system, from 0 to 19: the higher, the later its turn. */
  niceness: number
}

export const PROGRESS = {
  /** Which of the mails that it was given the thread reads. */
  index: 0,
  /** The thread's CPU time when it began that mail; NaN if it has begun none. */
  startMs: 1,
  /** 1 if the thread is to leave the mails behind that one. */
  mustStop: 2,
} as const

/** Accepting mail goes first: what was not accepted is lost to its sender, what was can wait, a little. */
const NICENESS = { usual: 5, urgent: 0 } as const

export type ThreadKind = keyof typeof NICENESS

/**
 * A thread that reads mails. Unlike a general pool of threads it reports which mail it is at and what CPU time that has
 * taken, so that one mail can be given up without those beside it.
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

  /** Which of the mails that it was given last the thread reads. */
  get index(): number {
    return this.progress[PROGRESS.index] ?? 0
  }

  /**
   * Resolves once the mails are read, or left because of `stop`; of none, once the thread is warm. Rejects if the thread
   * is lost.
   */
  async run(orders: readonly ParseOrder[], onResults: (results: ParseResult[]) => void): Promise<void> {
    this.throwIfLost()
    this.progress.fill(0)
    this.progress[PROGRESS.startMs] = NaN
    const { promise, resolve, reject } = Promise.withResolvers<undefined>()
    this.running = { onResults, resolve, reject }
    this.worker.postMessage(orders)
    await promise.finally(() => (this.running = null))
    // `end` may have been called just when the thread had finished.
    this.throwIfLost()
  }

  private throwIfLost(): void {
    if (this.lost !== null) throw this.lost
  }

  /** Has the thread leave the mails behind the one that it reads. */
  stop(): void {
    this.progress[PROGRESS.mustStop] = 1
  }

  /** The CPU time that the mail under way has taken so far; null if it has not begun, or the thread has ended. */
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

  /** Its run rejects at once. Resolves once the thread has ended, which takes time on a busy machine. */
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
  /** How many usual threads there are, beside the one for urgent mail. */
  threads: number
  memoryMib: number
  /** Called with the error of a thread that ended by itself. */
  onThreadLost: (error: unknown) => void
}

/** Between attempts to start a thread that does not come up. */
const RETRY_MS = 500

/** The usual threads and the one for urgent mail, each warm before it is used. A lost one is replaced. */
export class ParseThreads {
  private readonly all = new Set<ParseThread>()
  private readonly free: Record<ThreadKind, ParseThread[]> = { usual: [], urgent: [] }
  private isClosed = false

  /** Resolves once the first ones are warm. */
  readonly whenWarm: Promise<unknown>

  constructor(
    private readonly options: ParseThreadsOptions,
    private readonly onFree: () => void,
  ) {
    const usual = Array.from({ length: options.threads }, () => this.start('usual'))
    this.whenWarm = Promise.all([...usual, this.start('urgent')])
  }

  get freeCount(): number {
    return this.free.usual.length + this.free.urgent.length
  }

  hasFree(kind: ThreadKind): boolean {
    return this.free[kind].length > 0
  }

  /** Null if none is free. */
  take(kind: ThreadKind): ParseThread | null {
    return this.free[kind].pop() ?? null
  }

  giveBack(thread: ParseThread): void {
    if (this.all.has(thread)) this.free[thread.kind].push(thread)
  }

  /** Ends a thread, if it has not ended yet, and starts another. */
  replace(thread: ParseThread): void {
    void thread.end()
    if (this.all.delete(thread)) void this.start(thread.kind)
  }

  async close(): Promise<void> {
    this.isClosed = true
    await Promise.all([...this.all].map((thread) => thread.end()))
  }

  private async start(kind: ThreadKind): Promise<void> {
    while (!this.isClosed) {
      const thread = new ParseThread(kind, this.options.memoryMib, this.options.onThreadLost)
      this.all.add(thread)
      try {
        await thread.run([], () => undefined)
        this.giveBack(thread)
        this.onFree()
        return
      } catch (error) {
        this.all.delete(thread)
        await thread.end()
        if (!(error instanceof ThreadEndedError)) await pause(RETRY_MS)
      }
    }
  }
}
