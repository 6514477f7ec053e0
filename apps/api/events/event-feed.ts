import { INBOX_EVENTS, type InboxEvent } from '#libs/domain/inbox/events.js'
import type { AccountId, MessageId } from '#libs/domain/ids/typeid.js'
import type { MailRead, RequestBudgets } from '../http/budgets.js'
import { isTransient, Problem } from '../http/problems.js'

/*
 * The text of a stream: it reads new events, sends them one after the other, and waits for more. The format is that of
 * server-sent events (HTML standard, section 9.2): an event is a number of lines and an empty line, and a line that
 * begins with a colon is a comment.
 */

/** An event in a feed, without its content. */
export interface FeedEntry {
  offset: number
  time: Date
  type: InboxEvent['type']
  messageId: MessageId | null
}

/** The events that one stream sends, in their order. It has a position, which only advances. */
export interface Feed<Entry extends FeedEntry> {
  /** The next entries, at most `pageSize`; fewer only if there are no more now. */
  read: () => Promise<readonly Entry[]>
  pageSize: number
  /** The JSON of an entry. Null if clients get no event for it. */
  dataOf: (entry: Entry, read: MailRead) => Promise<string | null>
  /** The cursor of the position after an entry. */
  cursorAfter: (entry: Entry) => string
  /** Moves the position behind an entry. Returns whether the feed ends with it. */
  pass: (entry: Entry) => boolean
  /** Limits the time until the next read, also after an error. */
  limitPause?: (ms: number) => number | 'inbox-ended'
}

/** The client of a stream. */
export interface StreamClient {
  accountId: AccountId
  /** Resolves when there may be new events, and after that time at the latest. */
  pause: (ms: number) => Promise<void>
  /** Called before each event. Rejects with a Problem if the caller is no longer valid, or can't be checked. */
  authenticate: () => Promise<void>
}

/** Why the events end: the inbox has ended, or the key may no longer read it. */
export type EndOfEvents = 'inbox-ended' | 'key-refused'

/** Why a stream ended. */
export type StreamOutcome =
  EndOfEvents | 'client-gone' | 'client-stalled' | 'crowded-out' | 'stopping' | 'failed'

/** The milliseconds after which a client whose stream has ended reconnects. */
export const RETRY = 'retry: 2000\n\n'
/** Shows clients and proxies that the connection is still open. */
const COMMENT = ':\n\n'
const COMMENT_EVERY_MS = 15_000
/** The feed is read again after this time, since signals may be lost. A revoked key is noticed by then. */
const REREAD_MS = 5_000
/** The same if the views or the key can't be read, or the views are catching up. */
export const RETRY_MS = 1_000

/** Generates the text of a stream until its events end, or the signal aborts. What can't be read is retried. */
export async function* streamText<Entry extends FeedEntry>(
  feed: Feed<Entry>,
  client: StreamClient,
  budgets: RequestBudgets,
  signal: AbortSignal,
): AsyncGenerator<string, EndOfEvents | undefined> {
  const { authenticate, pause } = client
  let commentAtMs = performance.now() + COMMENT_EVERY_MS
  const isOver = () => signal.aborted
  yield RETRY
  while (!isOver()) {
    let waitMs = REREAD_MS
    try {
      await authenticate()
      const entries = await feed.read()
      for (const entry of entries) {
        yield* eventText(feed, entry, client, budgets, signal)
        if (isOver()) return undefined
        if (feed.pass(entry)) return 'inbox-ended'
      }
      if (entries.length === feed.pageSize) waitMs = 0
    } catch (error) {
      if (isOver()) return undefined
      if (error instanceof Problem && error.status < 500) return 'key-refused'
      if (!isTransient(error)) throw error
      waitMs = RETRY_MS
    }
    const nowMs = performance.now()
    if (nowMs >= commentAtMs) {
      yield COMMENT
      commentAtMs += COMMENT_EVERY_MS * Math.ceil((nowMs - commentAtMs + 1) / COMMENT_EVERY_MS)
    }
    const limitedMs = feed.limitPause?.(waitMs) ?? waitMs
    if (limitedMs === 'inbox-ended') return limitedMs
    if (limitedMs > 0) await pause(Math.min(limitedMs, Math.max(0, commentAtMs - performance.now())))
  }
  return undefined
}

/**
 * Yields an event, if clients get one for the entry. It holds memory until the client has read it. A client sends the
 * `id` as `Last-Event-ID` when it reconnects.
 */
async function* eventText<Entry extends FeedEntry>(
  feed: Feed<Entry>,
  entry: Entry,
  { accountId, authenticate }: StreamClient,
  budgets: RequestBudgets,
  signal: AbortSignal,
): AsyncGenerator<string, void> {
  await authenticate()
  const data = await budgets.readFor(accountId, signal, (read) => feed.dataOf(entry, read))
  if (data === null || signal.aborted) return
  const { publicName } = INBOX_EVENTS[entry.type]
  // The data is JSON, which has no line breaks.
  const text = `id: ${feed.cursorAfter(entry)}\nevent: ${publicName}\ndata: ${data}\n\n`
  const release = await budgets.holdEvent(accountId, Buffer.byteLength(text), signal)
  try {
    yield text
  } finally {
    release()
  }
}
