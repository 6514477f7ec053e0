import { useCallback, useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks'
import type { Inbox, Schemas } from '#clients/typescript/src/mayfly.js'
import { useAfterHidden, type OpenFeed } from '../feed.js'
import { followEvents } from '../parts/followed-events.js'
import { useRetry } from '../parts/loading.js'
import { usePages } from '../parts/pages.js'
import type { MailAccess, Session } from '../session.js'
import { isInlineImage } from './attachments.js'

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
  remove: (ids: Iterable<string>) => void
}

const PREVIEW_CHARACTERS = 160
/** After as many arrivals the list is read again, so that a page that is open for days does not grow without end. */
const MAX_ARRIVALS = 5_000
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
> & { attachments: readonly Schemas['Attachment'][] }

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
    hasAttachments: !message.attachments.every(isInlineImage),
    hasArrived,
  }
}

/** A list whose pages are read as they come into view, and which events change. */
function useListed(isLive: boolean, reload: () => void) {
  const [messages, setMessages] = useState<readonly ListedMessage[]>([])
  const [error, setError] = useState<unknown>(null)
  useRetry(error, reload)
  /** The ids of mail and inboxes that were deleted since the list was started: a page that is being read may have them. */
  const deleted = useRef(new Set<string>())
  const arrivals = useRef(0)
  const isThere = ({ id, inbox_id }: ListedMessage) =>
    !deleted.current.has(id) && !deleted.current.has(inbox_id)
  const {
    hasMore,
    start: startPages,
    loadMore,
  } = usePages<Read>(
    (page) => setMessages((known) => merge(known, page.map((each) => listed(each)).filter(isThere))),
    setError,
  )
  /** Starts with an empty list. */
  const start: typeof startPages = (...pages) => {
    deleted.current = new Set()
    arrivals.current = 0
    setMessages([])
    setError(null)
    startPages(...pages)
  }
  /** Shows newer mail above what is known. */
  const add = (received: readonly ListedMessage[]) => {
    arrivals.current += received.length
    if (arrivals.current > MAX_ARRIVALS) reload()
    else setMessages((known) => merge(received.filter(isThere), known))
  }
  const remove = useCallback((ids: Iterable<string>) => {
    for (const id of ids) deleted.current.add(id)
    setMessages((known) => known.filter(isThere))
  }, [])
  const list: MessageList = { messages, hasMore, error, isLive, loadMore, reload, remove }
  return { list, start, add, remove, setError }
}

/** Mail that has arrived by events, newest first, and what is deleted. */
function changesIn(events: Events): { received: ListedMessage[]; deleted: string[] } {
  const received: ListedMessage[] = []
  const deleted: string[] = []
  for (const { type, data } of events) {
    if (type === 'message.received') received.unshift(listed(data, true))
    else deleted.push(data.id)
  }
  return { received, deleted }
}

/** The mail of the environment, or what a search finds of it: page by page, and new mail as it arrives. */
export function useAllMail({ api }: Session, { feed, isLive, restart }: OpenFeed, q: string): MessageList {
  const { list, start, add, remove } = useListed(isLive, restart)
  // Before the paint, so that the list is read sooner.
  useLayoutEffect(() => {
    const aborter = new AbortController()
    const { signal } = aborter
    const query = { ...(q === '' ? {} : { q }), order: 'desc', signal } as const
    let timer: ReturnType<typeof setTimeout> | undefined

    async function* pages() {
      await feed.started
      yield* api.messages.pages(query)
    }
    const searchAgain = async () => {
      timer = undefined
      const { value } = await api.messages.pages(query).next()
      if (value && !signal.aborted) add(value.map((each) => listed(each)))
    }

    const unsubscribe = feed.subscribe((events) => {
      const { received, deleted } = changesIn(events)
      remove(deleted)
      if (q === '') add(received)
      else if (received.length > 0)
        // A search that fails is repeated with the next mail.
        timer ??= setTimeout(() => void searchAgain().catch(() => undefined), SETTLE_MS)
    })
    start(pages(), signal, q !== '')
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
  const { list, start, add, remove, setError } = useListed(isLive, reload)
  useAfterHidden(reload)

  useEffect(() => {
    const aborter = new AbortController()
    const { signal } = aborter
    setInbox(null)
    setError(null)

    const open = async () => {
      const found = await api.inboxes.get(inboxId, { signal, password: passwords.get(inboxId) })
      // The position comes first, so no message is missing between the list and the stream.
      const since = await found.cursor({ signal })
      setInbox(found)
      start(found.messagePages({ order: 'desc', signal }), signal)
      await followEvents({
        since,
        signal,
        open: (after, untilClosed) => found.events({ since: after, signal: untilClosed }),
        check: () => found.refresh({ signal }),
        onEvents: (events) => {
          const { received, deleted } = changesIn(events)
          remove(deleted)
          add(received)
        },
        onLive: setLive,
      })
    }

    open().catch((reason: unknown) => {
      if (!signal.aborted) setError(reason)
    })
    return () => aborter.abort()
  }, [inboxId, reloads])
  return { ...list, isLive: isLive && list.error === null, inbox }
}

/** Both lists, newest first, without repeats. */
function merge(newer: readonly ListedMessage[], older: readonly ListedMessage[]): ListedMessage[] {
  const known = new Set(newer.map(({ id }) => id))
  return [...newer, ...older.filter(({ id }) => !known.has(id))]
}
