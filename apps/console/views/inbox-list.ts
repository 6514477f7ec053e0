import { useCallback, useEffect, useState } from 'preact/hooks'
import type { QueryOptions, Schemas } from '#clients/typescript/src/mayfly.js'
import { usePages } from '../parts/pages.js'
import type { Session } from '../session.js'

export type ListedInbox = Schemas['Inbox'] | Schemas['EndedInbox']

export const isActive = (inbox: ListedInbox): inbox is Schemas['Inbox'] => inbox.state === 'active'

export type InboxFilters = Pick<QueryOptions<'listInboxes'>, 'state' | 'labels'>

/** How often the newest inboxes are read again, while the page is visible. */
const REFRESH_MS = 5_000
const REFRESHED_INBOXES = 100

export interface InboxList {
  /** Newest first. */
  inboxes: readonly ListedInbox[]
  /** Whether there are more. */
  hasMore: boolean
  error: unknown
  loadMore: () => void
  /** Reads the newest inboxes again. */
  refresh: () => void
  /** Shows a changed or new inbox. */
  put: (inbox: ListedInbox) => void
  remove: (ids: readonly string[]) => void
}

/** The inboxes of the environment, page by page; the newest ones are kept up to date. */
export function useInboxList({ api }: Session, filters: InboxFilters): InboxList {
  const [inboxes, setInboxes] = useState<ReadonlyMap<string, ListedInbox>>(new Map())
  const [error, setError] = useState<unknown>(null)
  const { hasMore, start, loadMore } = usePages<ListedInbox>(
    (page) => setInboxes((known) => new Map([...known, ...page.map((each) => [each.id, each] as const)])),
    setError,
  )
  const query = JSON.stringify(filters)

  const refresh = useCallback(async () => {
    try {
      const newest = await api.inboxes.list({ ...filters, limit: REFRESHED_INBOXES })
      setError(null)
      const ids = new Set(newest.map(({ id }) => id))
      const oldest = newest.at(-1)
      // An inbox that is missing among the newest ones has ended.
      const hasEnded = ({ id, created_at }: ListedInbox) =>
        !ids.has(id) && (newest.length < REFRESHED_INBOXES || created_at > (oldest?.created_at ?? ''))
      setInboxes((known) => {
        const kept = [...known.values()].filter((each) => !ids.has(each.id) && !hasEnded(each))
        return new Map([...newest, ...kept].map((each) => [each.id, each]))
      })
    } catch (reason) {
      setError(reason)
    }
  }, [query])

  useEffect(() => {
    const aborter = new AbortController()
    const { signal } = aborter
    setInboxes(new Map())
    setError(null)
    start(api.inboxes.pages({ ...filters, signal }), signal)
    const timer = setInterval(() => {
      if (document.visibilityState === 'visible') void refresh()
    }, REFRESH_MS)
    return () => {
      aborter.abort()
      clearInterval(timer)
    }
  }, [query])

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
    refresh: () => void refresh(),
    put,
    remove,
  }
}
