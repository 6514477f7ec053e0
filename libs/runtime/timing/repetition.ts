import { pauseUntilAborted } from './waiting.js'

export interface RepetitionOptions {
  /** Deals with its own errors; told by the signal that it is the last time. */
  work: (signal: AbortSignal) => Promise<void>
  /** From the end of one time to the beginning of the next. */
  everyMs: number
  /** Before the first time: none unless told otherwise. */
  firstAfterMs?: number
}

/** The same work again and again, never twice at once. */
export class Repetition {
  private readonly stopping = new AbortController()
  private loop: Promise<void> = Promise.resolve()

  constructor(private readonly options: RepetitionOptions) {}

  start(): void {
    this.loop = this.run()
  }

  /** Resolves once nothing of it is under way. */
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
