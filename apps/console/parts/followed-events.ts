import { ApiError, type InboxEvent, type Schemas } from '#clients/typescript/src/mayfly.js'

export interface FollowedEvents {
  /** The position after which the events begin. */
  since: string
  signal: AbortSignal
  /** The events after a position, as they happen, until the signal aborts. */
  open: (since: string, signal: AbortSignal) => AsyncIterable<InboxEvent>
  /** Rejects if the server can't be reached, or the events have ended. */
  check: () => Promise<unknown>
  /** Gets events in their order, those of a short time together. */
  onEvents: (events: readonly Schemas['EventBody'][]) => void
  /** Called with false when the connection is lost for longer, and with true when it is back. */
  onLive: (isLive: boolean) => void
}

/** Events within this time are passed on together. */
const BATCH_MS = 100
/** The pause before a lost stream, or one that the server refused as too many, is opened again. */
const REOPEN_MS = 2_000

/**
 * Follows events until the signal aborts. A lost stream continues after its last event. A page that is hidden has no
 * stream, since browsers open only six connections to a server. Rejects with ApiError if the server refuses the stream,
 * for example because the inbox has ended.
 */
export async function followEvents(followed: FollowedEvents): Promise<void> {
  const { signal, open, check, onEvents, onLive } = followed
  let cursor = followed.since
  let batch: Schemas['EventBody'][] = []
  const isOver = () => signal.aborted
  const passOn = () => {
    const events = batch
    batch = []
    if (!isOver()) onEvents(events)
  }
  let isConnected = true
  onLive(true)
  while (!isOver()) {
    try {
      if (!isConnected) {
        await check()
        isConnected = true
        onLive(true)
      }
      await untilVisible(signal)
      const closing = new AbortController()
      const close = () => closing.abort()
      document.addEventListener('visibilitychange', close)
      try {
        for await (const { id, data } of open(cursor, AbortSignal.any([signal, closing.signal]))) {
          cursor = id
          if (batch.push(data) === 1) setTimeout(passOn, BATCH_MS)
        }
      } catch (reason) {
        if (closing.signal.aborted) continue
        throw reason
      } finally {
        document.removeEventListener('visibilitychange', close)
      }
      // Only the events of an inbox end, with the inbox: the check says how.
      isConnected = false
    } catch (reason) {
      if (isOver()) return
      if (reason instanceof ApiError && reason.status < 429) throw reason
      isConnected = false
      onLive(false)
      await new Promise((resolve) => setTimeout(resolve, REOPEN_MS))
    }
  }
}

/** Resolves once the page is visible, or the signal aborts. */
function untilVisible(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const check = () => {
      if (document.hidden && !signal.aborted) return
      document.removeEventListener('visibilitychange', check)
      signal.removeEventListener('abort', check)
      resolve()
    }
    document.addEventListener('visibilitychange', check)
    signal.addEventListener('abort', check)
    check()
  })
}
