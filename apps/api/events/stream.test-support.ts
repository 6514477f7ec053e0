import { Doorbell } from '#libs/ports/signals/signals.js'
import { sendNew, type EndOfEvents, type Feed, type FeedEntry } from './event-feed.js'

/** What a stream sends to a client that takes one text after the other. */
export interface TestStream {
  /** Resolves with the next text; null if the stream has ended. */
  next: () => Promise<string | null>
  /** Why the events ended; null until then, and if `leave` was called. */
  outcome: () => EndOfEvents | null
  bell: Doorbell
  leave: () => void
}

export function startStream<Entry extends FeedEntry>(
  feed: Feed<Entry>,
  authenticate: () => Promise<void> = () => Promise.resolve(),
): TestStream {
  // A write resolves when its text is read.
  const { readable, writable } = new TransformStream<string, string>()
  const [reader, writer] = [readable.getReader(), writable.getWriter()]
  const bell = new Doorbell()
  let outcome: EndOfEvents | null = null
  let isGone = false
  const client = { isGone: () => isGone, authenticate, send: (text: string) => writer.write(text) }
  const run = async () => {
    while (!isGone && outcome === null) {
      const next = await sendNew(feed, client)
      if (typeof next === 'string') outcome = next
      else await bell.wait(next)
    }
    await writer.close()
  }
  run().catch((error: unknown) => writer.abort(error))
  return {
    next: async () => (await reader.read()).value ?? null,
    outcome: () => outcome,
    bell,
    leave: () => {
      isGone = true
      bell.ring()
    },
  }
}
