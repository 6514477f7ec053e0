import { Worker } from 'node:worker_threads'
import type { ParseRequest, ParseResult } from './parse-task.js'

/** The worker data of a parsing thread: memory shared with the main thread. PROGRESS names its elements. */
export type ParseProgress = Float64Array

export const PROGRESS = {
  /** The index of the mail that the thread is parsing. */
  index: 0,
  /** The thread's CPU time when it started that mail; NaN before the first mail. */
  startMs: 1,
} as const

/**
 * A thread that parses mails. It reports which mail it is parsing and how much CPU time that mail has taken, which
 * general thread pools don't, so that one mail can be abandoned without the others of its job.
 */
export class ParseThread {
  private readonly progress: ParseProgress = new Float64Array(
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
  constructor(memoryMib: number, onLost: (error: Error) => void) {
    this.worker = new Worker(new URL(import.meta.resolve('#apps/projector/parse-worker.js')), {
      workerData: this.progress,
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
   * Resolves once the mails are parsed. Without mails, resolves once the thread is warmed up. Rejects if the thread is
   * lost.
   */
  async run(requests: readonly ParseRequest[], onResults: (results: ParseResult[]) => void): Promise<void> {
    this.throwIfLost()
    this.progress[PROGRESS.index] = 0
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
    this.lost ??= new Error('the parsing thread was ended')
    this.running?.reject(this.lost)
    await this.worker.terminate()
  }
}
