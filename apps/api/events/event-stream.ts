import { Readable } from 'node:stream'
import type { EndOfEvents } from './inbox-feed.js'

/** Why a stream is over. */
export type StreamOutcome =
  EndOfEvents | 'client-gone' | 'client-stalled' | 'crowded-out' | 'stopping' | 'failed'

/** Text that is made as the client reads it, one chunk ahead. */
export class EventStream extends Readable {
  private readonly ending = new AbortController()
  private isConcluded = false
  private readonly chunks: AsyncGenerator<string, EndOfEvents | undefined>

  constructor(
    make: (signal: AbortSignal) => AsyncGenerator<string, EndOfEvents | undefined>,
    /** Makes the generator look at its signal. */
    private readonly wake: () => void,
    /** Called once, before the end, with its reason, unless the client ends the stream. */
    private readonly onOutcome: (outcome: StreamOutcome) => void,
  ) {
    super({ highWaterMark: 1 })
    this.chunks = make(this.ending.signal)
  }

  /** Ends it after the current chunk. */
  finish(outcome: StreamOutcome): void {
    this.conclude(outcome)
    this.stop()
  }

  /** Ends it at once. The client does not get what it has not read. */
  cut(outcome: StreamOutcome): void {
    this.conclude(outcome)
    this.destroy()
  }

  override _read(): void {
    this.chunks.next().then(
      ({ done, value }) => {
        if (this.destroyed) return
        if (done === true) {
          if (value !== undefined) this.conclude(value)
          this.push(null)
        } else {
          this.push(value)
        }
      },
      (error: unknown) => {
        this.conclude('failed')
        this.destroy(error instanceof Error ? error : new Error(String(error)))
      },
    )
  }

  override _destroy(error: Error | null, callback: (error?: Error | null) => void): void {
    this.stop()
    // Lets a paused generator release what it holds. If it fails instead, `_read` has reported that already.
    this.chunks.return(undefined).catch(() => undefined)
    callback(error)
  }

  private conclude(outcome: StreamOutcome): void {
    if (this.isConcluded) return
    this.isConcluded = true
    this.onOutcome(outcome)
  }

  private stop(): void {
    this.ending.abort()
    this.wake()
  }
}
