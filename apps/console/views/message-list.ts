import { useCallback, useEffect, useState } from 'preact/hooks'
import { ApiError, type Inbox, type Schemas } from '#clients/typescript/src/mayfly.js'
import { usePages } from '../parts/pages.js'
import type { MailAccess } from '../session.js'

/** What a list of messages shows of one. */
export type ListedMessage = Pick<
  Schemas['Message'],
  'id' | 'received_at' | 'subject' | 'sender' | 'codes'
> & {
  attachments: readonly unknown[]
}

/** Arrivals within this time are shown together. */
const BATCH_MS = 100
/** A stream that the server refuses, as too many, is opened again after this time. */
const REOPEN_MS = 2_000

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
  const [round, setRound] = useState(0)
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
      await follow(found, since)
    }

    const follow = async (found: Inbox, since: string) => {
      let arrived: ListedMessage[] = []
      let timer: ReturnType<typeof setTimeout> | undefined
      const show = () => {
        timer = undefined
        const batch = arrived
        arrived = []
        setMessages((known) => merge(batch.reverse(), known))
      }
      let cursor = since
      while (!signal.aborted) {
        try {
          setLive(true)
          for await (const { id, data: event } of found.events({ since: cursor, signal })) {
            cursor = id
            if (event.type === 'message.received') {
              arrived.push(event.data)
              timer ??= setTimeout(show, BATCH_MS)
            } else if (event.type === 'message.deleted') {
              const deleted = event.data.id
              arrived = arrived.filter(({ id: each }) => each !== deleted)
              setMessages((known) => known.filter(({ id: each }) => each !== deleted))
            }
          }
          // The inbox has ended: reading it says how.
          await found.refresh({ signal })
        } catch (reason) {
          setLive(false)
          if (reason instanceof ApiError && reason.status < 429) throw reason
          await new Promise((resolve) => setTimeout(resolve, REOPEN_MS))
        }
      }
    }

    start().catch((reason: unknown) => {
      if (!signal.aborted) setError(reason)
    })
    return () => aborter.abort()
  }, [inboxId, round])

  return {
    inbox,
    messages,
    hasMore,
    error,
    isLive,
    loadMore,
    reload: useCallback(() => setRound((value) => value + 1), []),
    remove: useCallback((id) => setMessages((known) => known.filter((each) => each.id !== id)), []),
  }
}

/** Both lists, newest first, without repeats. */
function merge(newer: readonly ListedMessage[], older: readonly ListedMessage[]): ListedMessage[] {
  const known = new Set(newer.map(({ id }) => id))
  return [...newer, ...older.filter(({ id }) => !known.has(id))]
}
