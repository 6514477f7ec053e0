import { useCallback, useEffect, useState } from 'preact/hooks'
import type { Inbox, Schemas } from '#clients/typescript/src/mayfly.js'
import { followEvents } from '../parts/followed-events.js'
import { usePages } from '../parts/pages.js'
import type { MailAccess } from '../session.js'

/** What a list of messages shows of one. */
export type ListedMessage = Pick<
  Schemas['Message'],
  'id' | 'received_at' | 'subject' | 'sender' | 'codes'
> & {
  attachments: readonly unknown[]
}

export interface MessageList {
  inbox: Inbox | null
  /** Newest first. */
  messages: readonly ListedMessage[]
  hasMore: boolean
  error: unknown
  /** Whether new mail is shown as it arrives. */
  isLive: boolean
  loadMore: () => void
  reload: () => void
  remove: (id: string) => void
}

/** The messages of an inbox: those that are there, page by page, and new ones as they arrive. */
export function useMessageList({ api, passwords }: MailAccess, inboxId: string): MessageList {
  const [reloads, setReloads] = useState(0)
  const [inbox, setInbox] = useState<Inbox | null>(null)
  const [messages, setMessages] = useState<readonly ListedMessage[]>([])
  const [isLive, setLive] = useState(false)
  const [error, setError] = useState<unknown>(null)
  const {
    hasMore,
    start: startPages,
    loadMore,
  } = usePages<ListedMessage>((page) => setMessages((known) => merge(known, page)), setError)

  useEffect(() => {
    const aborter = new AbortController()
    const { signal } = aborter
    setInbox(null)
    setMessages([])
    setError(null)

    const start = async () => {
      const found = await api.inboxes.get(inboxId, { signal, password: passwords.get(inboxId) })
      // The position comes first, so no message is missing between the list and the stream.
      const since = await found.cursor({ signal })
      setInbox(found)
      startPages(found.messagePages({ order: 'desc', signal }), signal)
      await followEvents({
        since,
        signal,
        open: (after, untilClosed) => found.events({ since: after, signal: untilClosed }),
        check: () => found.refresh({ signal }),
        onEvents: (events) => setMessages((known) => applyEvents(known, events)),
        onLive: setLive,
      })
    }

    start().catch((reason: unknown) => {
      if (!signal.aborted) setError(reason)
    })
    return () => aborter.abort()
  }, [inboxId, reloads])

  return {
    inbox,
    messages,
    hasMore,
    error,
    isLive,
    loadMore,
    reload: useCallback(() => {
      setError(null)
      setReloads((value) => value + 1)
    }, []),
    remove: useCallback((id) => setMessages((known) => known.filter((each) => each.id !== id)), []),
  }
}

/** The list after events, which are newer than everything in it. */
function applyEvents(
  known: readonly ListedMessage[],
  events: readonly Schemas['EventBody'][],
): ListedMessage[] {
  const received: ListedMessage[] = []
  const deleted = new Set<string>()
  for (const { type, data } of events) {
    if (type === 'message.received') received.unshift(data)
    else if (type === 'message.deleted') deleted.add(data.id)
  }
  return merge(received, known).filter(({ id }) => !deleted.has(id))
}

/** Both lists, newest first, without repeats. */
function merge(newer: readonly ListedMessage[], older: readonly ListedMessage[]): ListedMessage[] {
  const known = new Set(newer.map(({ id }) => id))
  return [...newer, ...older.filter(({ id }) => !known.has(id))]
}
