import { Worker } from 'node:worker_threads'
import type { ParseOrder, ParseResult } from './parse-task.js'

export interface ParseThreadOptions extends Pick<ParseThreadData, 'niceness'> {
  memoryMib: number
}

/**
 * A thread that reads mails. Unlike a general pool of threads it tells which mail it is at and what CPU time that has
 * taken, so that one mail can be given up without those beside it.
 */
export class ParseThread {
  private readonly progress = new ThreadProgress()
  private readonly worker: Worker
  private under: {
    told: (results: ParseResult[]) => void
    end: () => void
    fail: (e: unknown) => void
  } | null = null
  private lost: Error | null = null

  /** `onLost` is told of a thread that ended by itself. */
  constructor({ memoryMib, niceness }: ParseThreadOptions, onLost: (error: Error) => void) {
    const data: ParseThreadData = { memory: this.progress.memory, niceness }
    this.worker = new Worker(new URL(import.meta.resolve('#apps/projector/parse-worker.js')), {
      workerData: data,
      resourceLimits: { maxOldGenerationSizeMb: memoryMib },
    })
    this.worker.on('message', (results: ParseResult[] | null) => {
      if (results === null) this.under?.end()
      else this.under?.told(results)
    })
    const lose = (error: Error) => {
      if (this.lost !== null) return
      this.lost = error
      this.under?.fail(error)
      onLost(error)
    }
    this.worker.on('error', lose)
    this.worker.on('exit', (code) => lose(new Error(`a parsing thread ended with ${code}`)))
  }

  /** The place of the mail that it reads among those it was given last. */
  get index(): number {
    return this.progress.index
  }

  /** Resolves once the mails are read, or those left that `stop` spared it. Rejects if the thread is lost. */
  async run(orders: readonly ParseOrder[], told: (results: ParseResult[]) => void): Promise<void> {
    this.assertThere()
    this.progress.clear()
    try {
      await new Promise<void>((end, fail) => {
        this.under = { told, end, fail }
        this.worker.postMessage(orders)
      })
    } finally {
      this.under = null
    }
    // It may have been told to end just when it came to the end.
    this.assertThere()
  }

  private assertThere(): void {
    if (this.lost !== null) throw this.lost
  }

  /** Once the mail that it reads is read, those behind it are left. */
  stop(): void {
    this.progress.stop()
  }

  /** The CPU time that the mail under way has taken so far; null if it is not begun, or the thread doesn't tell. */
  async cpuMs(): Promise<number | null> {
    try {
      const { user, system } = await this.worker.cpuUsage()
      const { startMs } = this.progress
      return startMs === null ? null : (user + system) / 1_000 - startMs
    } catch {
      // It has just ended, which its run tells.
      return null
    }
  }

  /** Its run rejects at once. Resolves once it has ended, which on a busy machine takes its time. */
  async end(): Promise<void> {
    this.lost ??= new ThreadEndedError()
    this.under?.fail(this.lost)
    await this.worker.terminate()
  }
}

export class ThreadEndedError extends Error {
  override readonly name = 'ThreadEndedError'

  constructor() {
    super('the parsing thread was ended')
  }
}

/** Whether a thread ended since it would have taken more memory than it may. */
export function isOutOfMemory(error: unknown): boolean {
  return (
    typeof error === 'object' &&
    error !== null &&
    'code' in error &&
    error.code === 'ERR_WORKER_OUT_OF_MEMORY'
  )
}

/** What a parsing thread is started with. */
export interface ParseThreadData {
  memory: SharedArrayBuffer
  /** Its priority, from 0 to 19, as the operating system has it: the higher, the later its turn. */
  niceness: number
}

/** What a parsing thread and who watches it tell each other while the thread is busy: memory that both see. */
export class ThreadProgress {
  private readonly numbers: Float64Array

  constructor(
    readonly memory: SharedArrayBuffer = new SharedArrayBuffer(3 * Float64Array.BYTES_PER_ELEMENT),
  ) {
    this.numbers = new Float64Array(memory)
  }

  /** The place, among the mails that it was given, of the one that it reads. */
  get index(): number {
    return this.numbers[0] ?? 0
  }

  /** The thread's CPU time when it began that one; null if it has begun none, since it has not had its turn yet. */
  get startMs(): number | null {
    const startMs = this.numbers[1] ?? NaN
    return Number.isNaN(startMs) ? null : startMs
  }

  /** Whether it is to leave the mails behind that one. */
  get isToStop(): boolean {
    return this.numbers[2] === 1
  }

  begin(index: number, startMs: number): void {
    this.numbers[1] = startMs
    this.numbers[0] = index
  }

  stop(): void {
    this.numbers[2] = 1
  }

  /** Before the thread is given mails. */
  clear(): void {
    this.numbers.fill(0)
    this.numbers[1] = NaN
  }
}
