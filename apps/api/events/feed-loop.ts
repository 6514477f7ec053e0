import type { AccountId } from '#libs/domain/ids/typeid.js'
import type { MailRead, RequestBudgets } from '../http/budgets.js'
import { isTransient, Problem } from '../http/problems.js'
import { COMMENT, RETRY, type EndOfEvents } from './event-stream.js'

/*
 * What all streams of events have in common: they read new events, send them one after the other, and wait for more.
 */

/** The client of a stream. */
export interface StreamClient {
  accountId: AccountId
  /** Resolves when there may be new events, and after that time at the latest. */
  pause: (ms: number) => Promise<void>
  /** Called before each event. Rejects with a Problem if the caller is no longer valid, or can't be checked. */
  authenticate: () => Promise<void>
}

export interface Feed {
  /**
   * Yields the texts of the events that come next. Returns whether there may be more at once. If it throws, it is called
   * again later, and continues where it was.
   */
  read: () => AsyncGenerator<string, 'more' | 'all' | 'inbox-ended'>
  /** Limits the time until the next read, also after an error. */
  limitPause?: (ms: number) => number | 'inbox-ended'
}

const COMMENT_EVERY_MS = 15_000
/** The feed is read again after this time, since signals may be lost. A revoked key is noticed by then. */
const REREAD_MS = 5_000
/** The same if the views or the key can't be read, or the views are catching up. */
export const RETRY_MS = 1_000

/** Generates the text of a stream until its events end, or the signal aborts. What can't be read is retried. */
export async function* repeatFeed(
  { read, limitPause = (ms) => ms }: Feed,
  { authenticate, pause }: StreamClient,
  signal: AbortSignal,
): AsyncGenerator<string, EndOfEvents | undefined> {
  let commentAtMs = performance.now() + COMMENT_EVERY_MS
  const isOver = () => signal.aborted
  yield RETRY
  while (!isOver()) {
    let waitMs = REREAD_MS
    try {
      await authenticate()
      const outcome = yield* read()
      if (outcome === 'inbox-ended') return outcome
      if (outcome === 'more') waitMs = 0
    } catch (error) {
      if (isOver()) return undefined
      if (error instanceof Problem && error.status < 500) return 'key-refused'
      if (!isTransient(error)) throw error
      waitMs = RETRY_MS
    }
    if (isOver()) return undefined
    const nowMs = performance.now()
    if (nowMs >= commentAtMs) {
      yield COMMENT
      commentAtMs += COMMENT_EVERY_MS * Math.ceil((nowMs - commentAtMs + 1) / COMMENT_EVERY_MS)
    }
    const limitedMs = limitPause(waitMs)
    if (limitedMs === 'inbox-ended') return limitedMs
    if (limitedMs > 0) await pause(Math.min(limitedMs, Math.max(0, commentAtMs - performance.now())))
  }
  return undefined
}

/** Yields the text of an event, unless it is null. It holds memory until the client has read it. */
export async function* sendEvent(
  budgets: RequestBudgets,
  { accountId, authenticate }: StreamClient,
  signal: AbortSignal,
  write: (read: MailRead) => Promise<string | null>,
): AsyncGenerator<string, void> {
  await authenticate()
  const text = await budgets.readFor(accountId, signal, write)
  if (text === null || signal.aborted) return
  const release = await budgets.holdEvent(accountId, Buffer.byteLength(text), signal)
  try {
    yield text
  } finally {
    release()
  }
}
