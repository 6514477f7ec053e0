import { INBOX_EVENTS, type InboxEvent } from '#libs/domain/inbox/events.js'
import type { MessageId } from '#libs/domain/ids/typeid.js'
import { isTransient, Problem } from '../http/problems.js'

/*
 * What a stream sends: it reads new events, and sends them one after the other. The format is that of server-sent events
 * (HTML standard, section 9.2): an event is a number of lines and an empty line, and a line that begins with a colon is
 * a comment.
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
  dataOf: (entry: Entry) => Promise<string | null>
  /** The cursor of the position after an entry. */
  cursorAfter: (entry: Entry) => string
  /** Moves the position behind an entry. Returns whether the feed ends with it. */
  pass: (entry: Entry) => boolean
  /** Limits the time until the next read, also after an error. */
  limitPause?: (ms: number) => number | 'inbox-ended'
}

/** The client of a stream. */
export interface StreamClient {
  /** Whether nothing more is to be sent. */
  isGone: () => boolean
  /** Called before each event. Rejects with a Problem if the caller is no longer valid, or can't be checked. */
  authenticate: () => Promise<void>
  /** Resolves when the client, or the system on its behalf, has read the text, or is gone. */
  send: (text: string) => Promise<void>
}

/** Why the events end: the inbox has ended, or the key may no longer read it. */
export type EndOfEvents = 'inbox-ended' | 'key-refused'

/** Why a stream ended. */
export type StreamOutcome =
  EndOfEvents | 'client-gone' | 'client-stalled' | 'crowded-out' | 'stopping' | 'failed'

/** The milliseconds after which a client whose stream has ended reconnects. */
export const RETRY = 'retry: 2000\n\n'
/** The feed is read again after this time, since signals may be lost. A revoked key is noticed by then. */
const REREAD_MS = 5_000
/** The same if the views or the key can't be read, or the views are catching up. */
export const RETRY_MS = 1_000

/**
 * Sends the events that are new. Resolves with the milliseconds after which it must be called again at the latest, or with
 * why the events end.
 */
export async function sendNew<Entry extends FeedEntry>(
  feed: Feed<Entry>,
  client: StreamClient,
): Promise<number | EndOfEvents> {
  let waitMs = REREAD_MS
  try {
    for (let isMore = true; isMore && !client.isGone();) {
      await client.authenticate()
      const entries = await feed.read()
      for (const entry of entries) {
        await sendEvent(feed, entry, client)
        if (client.isGone()) return waitMs
        if (feed.pass(entry)) return 'inbox-ended'
      }
      isMore = entries.length === feed.pageSize
    }
  } catch (error) {
    if (error instanceof Problem && error.status < 500) return 'key-refused'
    if (!isTransient(error)) throw error
    waitMs = RETRY_MS
  }
  return feed.limitPause?.(waitMs) ?? waitMs
}

/** Sends an event, if clients get one for the entry. A client sends the `id` as `Last-Event-ID` when it reconnects. */
async function sendEvent<Entry extends FeedEntry>(
  feed: Feed<Entry>,
  entry: Entry,
  client: StreamClient,
): Promise<void> {
  await client.authenticate()
  const data = await feed.dataOf(entry)
  if (data === null || client.isGone()) return
  const { publicName } = INBOX_EVENTS[entry.type]
  // The data is JSON, which has no line breaks.
  await client.send(`id: ${feed.cursorAfter(entry)}\nevent: ${publicName}\ndata: ${data}\n\n`)
}
