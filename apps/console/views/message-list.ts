import { useCallback, useEffect, useState } from 'preact/hooks'
import type { Inbox, Schemas } from '#clients/typescript/src/mayfly.js'
import type { OpenFeed } from '../feed.js'
import { followEvents } from '../parts/followed-events.js'
import { usePages } from '../parts/pages.js'
import type { MailAccess, Session } from '../session.js'

type Events = readonly Schemas['EventBody'][]

/** What a list of messages shows of one. */
export interface ListedMessage {
  id: string
  inbox_id: string
  recipient: string
  received_at: string
  subject: string | null
  /** The sender's name, or else the address. */
  from: string
  /** The beginning of the text, in one line. */
  preview: string
  /** The most likely one-time code. */
  code: string | undefined
  hasAttachments: boolean
  /** Whether it arrived while the list was shown. */
  hasArrived: boolean
}

export interface MessageList {
  /** Newest first. */
  messages: readonly ListedMessage[]
  hasMore: boolean
  error: unknown
  /** Whether new mail is shown as it arrives. */
  isLive: boolean
  loadMore: () => void
  reload: () => void
  remove: (ids: readonly string[]) => void
}

const PAGE_MESSAGES = 100
const PREVIEW_CHARACTERS = 160
/** The pause before a search is repeated because of new mail. */
const SETTLE_MS = 1_000

type Read = Pick<
  Schemas['Message'],
  | 'id'
  | 'inbox_id'
  | 'recipient'
  | 'received_at'
  | 'subject'
  | 'sender'
  | 'from'
  | 'text'
  | 'visible_text'
  | 'codes'
> & { attachments: readonly unknown[] }

/** Without the content, which would fill the memory of the browser. */
function listed(message: Read, hasArrived = false): ListedMessage {
  const { id, inbox_id, recipient, received_at, subject, sender, from, text, visible_text, codes } = message
  const start = (text ?? visible_text ?? '').slice(0, 4 * PREVIEW_CHARACTERS)
  return {
    id,
    inbox_id,
    recipient,
    received_at,
    subject,
    from: from[0]?.name || sender,
    preview: start.replaceAll(/\s+/g, ' ').trim().slice(0, PREVIEW_CHARACTERS),
    code: codes[0]?.value,
    hasAttachments: message.attachments.length > 0,
    hasArrived,
  }
}

/** A list whose pages are read as they come into view. */
function useListed(isLive: boolean, reload: () => void) {
  const [messages, setMessages] = useState<readonly ListedMessage[]>([])
  const [error, setError] = useState<unknown>(null)
  const { hasMore, start, loadMore } = usePages<Read>(
    (page) =>
      setMessages((known) =>
        merge(
          known,
          page.map((each) => listed(each)),
        ),
      ),
    setError,
  )
  const remove = useCallback((ids: readonly string[]) => {
    setMessages((known) => known.filter(({ id }) => !ids.includes(id)))
  }, [])
  const list: MessageList = { messages, hasMore, error, isLive, loadMore, reload, remove }
  return { list, start, setMessages, setError }
}

/** The mail of the environment, or what a search finds of it: page by page, and new mail as it arrives. */
export function useAllMail({ api }: Session, { feed, isLive, restart }: OpenFeed, q: string): MessageList {
  const { list, start, setMessages, setError } = useListed(isLive, restart)
  useEffect(() => {
    const aborter = new AbortController()
    const { signal } = aborter
    const query = { ...(q === '' ? {} : { q }), order: 'desc', limit: PAGE_MESSAGES, signal } as const
    let timer: ReturnType<typeof setTimeout> | undefined

    /** The last search stays until there is something to show instead. */
    async function* pages() {
      await feed.started
      const found = api.messages.pages(query)
      const first = await found.next()
      if (signal.aborted) return
      setError(null)
      setMessages([])
      if (!first.done) yield first.value
      yield* found
    }
    const searchAgain = async () => {
      timer = undefined
      const { value } = await api.messages.pages(query).next()
      if (value && !signal.aborted)
        setMessages((known) =>
          merge(
            value.map((each) => listed(each)),
            known,
          ),
        )
    }

    const unsubscribe = feed.subscribe((events) => {
      if (q === '') setMessages((known) => applyEvents(known, events))
      else {
        setMessages((known) => withoutDeleted(known, events))
        if (events.some(({ type }) => type === 'message.received'))
          // A search that fails is repeated with the next mail.
          timer ??= setTimeout(() => void searchAgain().catch(() => undefined), SETTLE_MS)
      }
    })
    start(pages(), signal)
    return () => {
      aborter.abort()
      clearTimeout(timer)
      unsubscribe()
    }
  }, [feed, q])
  return list
}

/** The mail of an inbox, with a stream of its own: a protected inbox has no events in that of the environment. */
export function useInboxMail(
  { api, passwords }: MailAccess,
  inboxId: string,
): MessageList & { inbox: Inbox | null } {
  const [reloads, setReloads] = useState(0)
  const [inbox, setInbox] = useState<Inbox | null>(null)
  const [isLive, setLive] = useState(false)
  const reload = useCallback(() => setReloads((value) => value + 1), [])
  const { list, start, setMessages, setError } = useListed(isLive, reload)

  useEffect(() => {
    const aborter = new AbortController()
    const { signal } = aborter
    setInbox(null)
    setMessages([])
    setError(null)

    const open = async () => {
      const found = await api.inboxes.get(inboxId, { signal, password: passwords.get(inboxId) })
      // The position comes first, so no message is missing between the list and the stream.
      const since = await found.cursor({ signal })
      setInbox(found)
      start(found.messagePages({ order: 'desc', limit: PAGE_MESSAGES, signal }), signal)
      await followEvents({
        since,
        signal,
        open: (after, untilClosed) => found.events({ since: after, signal: untilClosed }),
        check: () => found.refresh({ signal }),
        onEvents: (events) => setMessages((known) => applyEvents(known, events)),
        onLive: setLive,
      })
    }

    open().catch((reason: unknown) => {
      if (!signal.aborted) setError(reason)
    })
    return () => aborter.abort()
  }, [inboxId, reloads])
  return { ...list, inbox }
}

/** The list after events, which are newer than everything in it. */
function applyEvents(known: readonly ListedMessage[], events: Events): readonly ListedMessage[] {
  const received: ListedMessage[] = []
  for (const { type, data } of events) if (type === 'message.received') received.unshift(listed(data, true))
  return withoutDeleted(merge(received, known), events)
}

function withoutDeleted(known: readonly ListedMessage[], events: Events): readonly ListedMessage[] {
  const messages = new Set<string>()
  const inboxes = new Set<string>()
  for (const { type, data } of events) {
    if (type === 'message.deleted') messages.add(data.id)
    else if (type === 'inbox.deleted' || type === 'inbox.expired') inboxes.add(data.id)
  }
  if (messages.size === 0 && inboxes.size === 0) return known
  return known.filter(({ id, inbox_id }) => !messages.has(id) && !inboxes.has(inbox_id))
}

/** Both lists, newest first, without repeats. */
function merge(newer: readonly ListedMessage[], older: readonly ListedMessage[]): ListedMessage[] {
  const known = new Set(newer.map(({ id }) => id))
  return [...newer, ...older.filter(({ id }) => !known.has(id))]
}
