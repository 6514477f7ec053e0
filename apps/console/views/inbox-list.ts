import { useCallback, useLayoutEffect, useRef, useState } from 'preact/hooks'
import { UnreachableError, type QueryOptions, type Schemas } from '#clients/typescript/src/mayfly.js'
import type { OpenFeed } from '../feed.js'
import { useRetry } from '../parts/loading.js'
import { usePages } from '../parts/pages.js'
import type { Session } from '../session.js'

export type ListedInbox = Schemas['Inbox'] | Schemas['EndedInbox']

export const isActive = (inbox: ListedInbox): inbox is Schemas['Inbox'] => inbox.state === 'active'

export type InboxFilters = Pick<QueryOptions<'listInboxes'>, 'state' | 'labels'>

/**
 * How many of the newest inboxes are read again, and how often, while the page is visible: protected inboxes, and new ones
 * without mail, have no events. A read of many costs the server three times one of few.
 */
const FEW = { inboxes: 10, everyMs: 15_000 }
const MANY = { inboxes: 100, everyMs: 60_000 }
/** The minimum time between two reads because of events. */
const SETTLE_MS = 5_000

export interface InboxList {
  /** Newest first. */
  inboxes: readonly ListedInbox[]
  /** Whether there are more. */
  hasMore: boolean
  error: unknown
  loadMore: () => void
  reload: () => void
  /** Shows a changed or new inbox. */
  put: (inbox: ListedInbox) => void
  remove: (ids: readonly string[]) => void
}

type Inboxes = ReadonlyMap<string, ListedInbox>

/**
 * The inboxes of the environment, page by page, with their counts as they change. The newest inboxes are read again after
 * an event of an inbox that is not listed, and after one that comes soon after a read, whose counts may include it already.
 */
export function useInboxList(
  { api }: Session,
  { feed, restart }: OpenFeed,
  filters: InboxFilters,
): InboxList {
  const [inboxes, setInboxes] = useState<Inboxes>(new Map())
  const listed = useRef(inboxes)
  listed.current = inboxes
  const [error, setError] = useState<unknown>(null)
  useRetry(error, restart)
  const {
    hasMore,
    start: startPages,
    loadMore,
  } = usePages<ListedInbox>(
    (page) => setInboxes((known) => new Map([...known, ...page.map((each) => [each.id, each] as const)])),
    setError,
  )
  const query = JSON.stringify(filters)

  // Before the paint, so that the list is read sooner.
  useLayoutEffect(() => {
    const aborter = new AbortController()
    const { signal } = aborter
    let timer: ReturnType<typeof setTimeout> | undefined
    let lastReadMs = 0
    let nextReadMs = Infinity
    let nextOfManyMs = 0

    async function* pages() {
      await feed.started
      lastReadMs = performance.now()
      nextOfManyMs = lastReadMs + MANY.everyMs
      readBy(lastReadMs + FEW.everyMs)
      yield* api.inboxes.pages({ ...filters, signal })
    }

    const unsubscribe = feed.subscribe((events) => {
      const nowMs = performance.now()
      const settledMs = lastReadMs + SETTLE_MS
      if (nowMs < settledMs || events.some((event) => isOfUnlisted(event, listed.current, filters)))
        readMany(Math.max(nowMs, settledMs))
      setInboxes((known) => applyEvents(known, events))
    })

    const readBy = (atMs: number) => {
      if (atMs >= nextReadMs) return
      clearTimeout(timer)
      nextReadMs = atMs
      timer = setTimeout(() => void readNewest(), Math.ceil(atMs - performance.now()))
    }

    const readMany = (atMs: number) => {
      nextOfManyMs = Math.min(nextOfManyMs, atMs)
      readBy(atMs)
    }

    const readNewest = async () => {
      nextReadMs = Infinity
      lastReadMs = performance.now()
      if (document.visibilityState === 'visible') {
        const { inboxes: limit } = lastReadMs < nextOfManyMs ? FEW : MANY
        try {
          const newest = await api.inboxes.list({ ...filters, limit, signal })
          if (limit === MANY.inboxes) nextOfManyMs = lastReadMs + MANY.everyMs
          // If all are new, there may be others between these and those that are listed.
          else if (newest.length === limit && !newest.some(({ id }) => listed.current.has(id)))
            readMany(lastReadMs + SETTLE_MS)
          setError(null)
          setInboxes((known) => withNewest(known, newest, limit))
        } catch (reason) {
          if (signal.aborted) return
          // The view shows a lost connection as such, and the next read may succeed.
          if (!(reason instanceof UnreachableError)) setError(reason)
        }
      }
      lastReadMs = performance.now()
      readBy(lastReadMs + FEW.everyMs)
    }

    setInboxes(new Map())
    setError(null)
    const onVisibility = () => readMany(performance.now())
    document.addEventListener('visibilitychange', onVisibility)
    startPages(pages(), signal)
    return () => {
      aborter.abort()
      unsubscribe()
      clearTimeout(timer)
      document.removeEventListener('visibilitychange', onVisibility)
    }
  }, [feed, query])

  const put = useCallback((inbox: ListedInbox) => {
    setInboxes((known) =>
      known.has(inbox.id)
        ? new Map(known).set(inbox.id, inbox)
        : new Map([[inbox.id, inbox] as const, ...known]),
    )
  }, [])
  const remove = useCallback((ids: readonly string[]) => {
    setInboxes((known) => new Map([...known].filter(([id]) => !ids.includes(id))))
  }, [])
  return {
    inboxes: [...inboxes.values()],
    hasMore,
    error,
    loadMore,
    reload: restart,
    put,
    remove,
  }
}

/** The list after another read of its newest inboxes, of at most `limit`. */
function withNewest(known: Inboxes, newest: readonly ListedInbox[], limit: number): Inboxes {
  const ids = new Set(newest.map(({ id }) => id))
  const oldest = newest.at(-1)
  // An inbox that is missing among the newest ones has ended.
  const hasEnded = ({ id, created_at }: ListedInbox) =>
    !ids.has(id) && (newest.length < limit || created_at > (oldest?.created_at ?? ''))
  const kept = [...known.values()].filter((each) => !ids.has(each.id) && !hasEnded(each))
  return new Map([...newest, ...kept].map((each) => [each.id, each]))
}

/** The list after events: with other counts, and without active inboxes that have ended. */
function applyEvents(known: Inboxes, events: readonly Schemas['EventBody'][]): Inboxes {
  const next = new Map(known)
  for (const { type, data } of events) {
    if (type === 'message.received' || type === 'message.deleted') {
      const inbox = next.get(data.inbox_id)
      if (inbox === undefined) continue
      const change = type === 'message.received' ? 1 : -1
      const changed = { ...inbox, message_count: inbox.message_count + change }
      const isNewest = type === 'message.received' && isActive(changed)
      next.set(inbox.id, isNewest ? { ...changed, last_message_at: data.received_at } : changed)
    } else if ('ended_at' in data) {
      const inbox = next.get(data.id)
      if (inbox !== undefined && isActive(inbox)) next.delete(data.id)
    }
  }
  return next
}

/** Whether an event is of an inbox that the list should have and lacks. */
function isOfUnlisted(
  { type, data }: Schemas['EventBody'],
  known: Inboxes,
  { state = 'active', labels }: InboxFilters,
): boolean {
  // The labels of an inbox that is not listed are not known.
  if (labels !== undefined && Object.keys(labels).length > 0) return false
  const isOfActive = type === 'message.received' || type === 'message.deleted'
  return isOfActive ? state === 'active' && !known.has(data.inbox_id) : state !== 'active'
}
