import type { ActiveInbox } from '#libs/domain/inbox/inbox.js'
import type { HistoryEntry } from '#libs/ports/read-model/history.js'
import type { Doorbell } from '#libs/ports/signals/signals.js'
import type { RequestBudgets } from '../http/budgets.js'
import { isTransient, Problem } from '../http/problems.js'
import { PAGE, type InboxFeed, COMMENT, eventText, RETRY } from './inbox-feed.js'

/** Why a stream is over: its inbox has ended, or its key may no longer read it. */
export type EndOfEvents = 'inbox-ended' | 'key-refused'

export interface ListeningOptions {
  feed: InboxFeed
  budgets: RequestBudgets
  inbox: ActiveInbox
  /** The first offset whose event is told. */
  from: number
  /** What links begin with. */
  family: string
  /** Rung where there may be something new. */
  bell: Doorbell
  /** Asked before each event. Rejects with a Problem if the key is no longer good, or if that can't be told. */
  authenticate: () => Promise<void>
}

const COMMENT_EVERY_MS = 15_000
/** Signals may be lost; a key that is revoked is noticed by then. */
const LOOK_EVERY_MS = 5_000
/** Where the views or the key can't be asked, or are catching up. */
const LOOK_AGAIN_MS = 1_000
/** From an inbox's expiry to its end in the history: where that takes longer, the stream ends without it. */
const END_WITHIN_MS = 10_000

/**
 * The text of a stream, chunk by chunk as it is asked for: each event once and in order, whatever becomes of the views
 * meanwhile, since the place only moves forward through the log's offsets. What can't be read just now is waited for.
 */
export async function* eventChunks(
  { feed, budgets, inbox, from, family, bell, authenticate }: ListeningOptions,
  signal: AbortSignal,
): AsyncGenerator<string, EndOfEvents | undefined> {
  let place = from
  let commentAtMs = performance.now() + COMMENT_EVERY_MS
  let expiredAtMs: number | null = null

  yield RETRY
  while (!isOver()) {
    let waitMs = LOOK_EVERY_MS
    try {
      await authenticate()
      const entries: HistoryEntry[] = await feed.entriesFrom(inbox, place)
      for (const entry of entries) {
        await authenticate()
        const told = await budgets.readFor(inbox.accountId, signal, (read) =>
          feed.eventOf(inbox, entry, family, read),
        )
        if (isOver()) return undefined
        if (told !== null) {
          const text = eventText(told)
          const release = await budgets.holdEvent(inbox.accountId, Buffer.byteLength(text), signal)
          try {
            yield text
          } finally {
            release()
          }
        }
        place = entry.offset + 1
        if (isEnd(entry)) return 'inbox-ended'
      }
      if (entries.length === PAGE) waitMs = 0
    } catch (error) {
      if (isOver()) return undefined
      if (error instanceof Problem && error.status < 500) return 'key-refused'
      if (!isTransient(error)) throw error
      waitMs = LOOK_AGAIN_MS
    }
    const nowMs = performance.now()
    if (nowMs >= commentAtMs) {
      yield COMMENT
      commentAtMs += COMMENT_EVERY_MS * Math.ceil((nowMs - commentAtMs + 1) / COMMENT_EVERY_MS)
    }
    const leftMs = feed.msLeftOf(inbox)
    if (leftMs <= 0) {
      expiredAtMs ??= nowMs
      if (nowMs >= expiredAtMs + END_WITHIN_MS) return 'inbox-ended'
      waitMs = Math.min(waitMs, LOOK_AGAIN_MS)
    } else {
      waitMs = Math.min(waitMs, leftMs)
    }
    if (waitMs > 0) await bell.wait(Math.min(waitMs, Math.max(0, commentAtMs - performance.now())))
  }
  return undefined

  function isOver(): boolean {
    return signal.aborted
  }
}

function isEnd({ type }: HistoryEntry): boolean {
  return type === 'InboxDeleted' || type === 'InboxExpired'
}
