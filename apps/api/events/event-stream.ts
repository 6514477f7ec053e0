import { Readable } from 'node:stream'

/** Why the events end: the inbox has ended, or the key may no longer read it. */
export type EndOfEvents = 'inbox-ended' | 'key-refused'

/** Why a stream ended. */
export type StreamOutcome =
  EndOfEvents | 'client-gone' | 'client-stalled' | 'crowded-out' | 'stopping' | 'failed'

/** A stream of server-sent events. Each chunk is made when the client has read the one before it. */
export class EventStream extends Readable {
  private readonly ending = new AbortController()
  private isConcluded = false
  private readonly chunks: AsyncGenerator<string, EndOfEvents | undefined>

  constructor(
    make: (signal: AbortSignal) => AsyncGenerator<string, EndOfEvents | undefined>,
    /** Makes the generator check its signal. */
    private readonly wake: () => void,
    /** Called once with the reason, before the stream ends. Not called if the client ends it. */
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

  /** Ends it immediately. The client does not receive what it has not read. */
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
    // Lets a paused generator release its resources. If it has failed, `_read` has already reported that.
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

/*
 * The format of server-sent events (HTML standard, section 9.2, "Server-sent events"): an event is a number of lines
 * and an empty line, and a line that begins with a colon is a comment.
 */

export const MEDIA_TYPE = 'text/event-stream'

/** The milliseconds after which a client whose stream has ended reconnects. */
export const RETRY = 'retry: 2000\n\n'

/** A comment, which shows clients and proxies that the connection is still open. */
export const COMMENT = ':\n\n'

/** An event. A client sends its `id` as `Last-Event-ID` when it reconnects. No part may contain a line break. */
export function eventText({ id, event, data }: { id: string; event: string; data: string }): string {
  return `id: ${id}\nevent: ${event}\ndata: ${data}\n\n`
}
