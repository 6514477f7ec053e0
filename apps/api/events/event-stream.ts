import { Readable } from 'node:stream'
import type { EndOfEvents } from './event-chunks.js'

/** Why a stream is over; `client-gone` where nothing here ended it. */
export type StreamOutcome = EndOfEvents | 'client-gone' | 'client-stalled' | 'stopping' | 'failed'

/** Text that is made as the client takes it: one chunk ahead and no further. */
export class EventStream extends Readable {
  outcome: StreamOutcome = 'client-gone'
  chunkCount = 0
  private readonly ending = new AbortController()
  private readonly chunks: AsyncGenerator<string, EndOfEvents | undefined>

  constructor(
    make: (signal: AbortSignal) => AsyncGenerator<string, EndOfEvents | undefined>,
    /** Lets the making look at its signal. */
    private readonly wake: () => void,
  ) {
    super({ highWaterMark: 1 })
    this.chunks = make(this.ending.signal)
  }

  /** Ends it behind the chunk that is under way. */
  finish(outcome: StreamOutcome): void {
    if (this.ending.signal.aborted) return
    this.outcome = outcome
    this.stop()
  }

  /** Ends it at once: what the client has not taken it does not get. */
  cut(outcome: StreamOutcome): void {
    if (!this.ending.signal.aborted) this.outcome = outcome
    this.destroy()
  }

  override _read(): void {
    this.chunks.next().then(
      ({ done, value }) => {
        if (this.destroyed) return
        if (done === true) {
          if (value !== undefined) this.outcome = value
          this.push(null)
        } else {
          this.chunkCount += 1
          this.push(value)
        }
      },
      (error: unknown) => {
        this.outcome = 'failed'
        this.destroy(error instanceof Error ? error : new Error(String(error)))
      },
    )
  }

  override _destroy(error: Error | null, callback: (error?: Error | null) => void): void {
    this.stop()
    callback(error)
  }

  private stop(): void {
    this.ending.abort()
    this.wake()
  }
}
