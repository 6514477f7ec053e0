import { useCallback, useEffect, useRef, useState } from 'preact/hooks'
import type { Message } from '#clients/typescript/src/mayfly.js'
import { useParameters, useSession, ViewLink } from '../navigation.js'
import { Empty, Field } from '../parts/controls.js'
import { parseLabels, Time } from '../parts/format.js'
import { Failure } from '../parts/loading.js'
import { VirtualList } from '../parts/virtual-list.js'
import type { Session } from '../session.js'
import { text } from '../text.js'

const FIELDS = [
  ['subject', text.search.subject, 'text'],
  ['sender', text.search.sender, 'text'],
  ['recipient', text.search.recipient, 'text'],
  ['text', text.search.text, 'text'],
  ['label', text.inboxes.label, 'text'],
  ['since', text.search.since, 'datetime-local'],
  ['until', text.search.until, 'datetime-local'],
] as const

type Filters = Partial<Record<(typeof FIELDS)[number][0], string>>

/** Finds mail of all inboxes of the environment that are not protected, newest first. */
export function SearchView() {
  const session = useSession()
  const [parameters, change] = useParameters()
  const filters: Filters = Object.fromEntries(FIELDS.map(([name]) => [name, parameters[name]]))
  const found = useFound(session, filters)
  return (
    <section class="list-view">
      <h1>{text.search.title}</h1>
      <div class="filters">
        {FIELDS.map(([name, label, type]) => (
          <Field
            key={name}
            label={label}
            type={type}
            value={filters[name] ?? ''}
            onChange={({ currentTarget }) => change({ [name]: currentTarget.value })}
          />
        ))}
      </div>
      {found.error !== null && <Failure error={found.error} />}
      {found.messages.length === 0 && !found.hasMore ? (
        <Empty title={text.search.none}>
          <p>{text.search.noneHint}</p>
        </Empty>
      ) : (
        <VirtualList
          label={text.search.title}
          items={found.messages}
          rowHeight={56}
          keyOf={({ id }) => id}
          onNearEnd={found.loadMore}
          row={({ id, inbox_id, subject, sender, recipient, received_at }) => (
            <div class="row">
              <div class="main">
                <ViewLink to={`/inboxes/${inbox_id}`} parameters={{ message: id }}>
                  {subject ?? text.mail.noSubject}
                </ViewLink>
                <br />
                <small>{text.mail.fromTo(sender, recipient)}</small>
              </div>
              <Time value={received_at} isRelative />
            </div>
          )}
        />
      )}
    </section>
  )
}

/** Pages are read as they come into view. A page may be empty although more follow, as each examines a limited number. */
function useFound({ api }: Session, filters: Filters) {
  const [messages, setMessages] = useState<readonly Message[]>([])
  const [hasMore, setHasMore] = useState(true)
  const [error, setError] = useState<unknown>(null)
  const more = useRef<() => void>(() => undefined)
  const query = JSON.stringify(filters)
  useEffect(() => {
    const aborter = new AbortController()
    const { signal } = aborter
    setMessages([])
    setHasMore(true)
    setError(null)
    const fail = (reason: unknown) => {
      if (!signal.aborted) setError(reason)
    }
    const read = () => {
      const { label = '', since, until, ...texts } = filters
      const time = (local: string | undefined) => (local ? new Date(local).toISOString() : undefined)
      const options = { ...texts, labels: parseLabels(label), since: time(since), until: time(until) }
      return api.messages.pages({ ...options, order: 'desc', signal })
    }
    const start = () => {
      const pages = read()
      let isLoading = false
      const next = () => {
        if (isLoading || signal.aborted) return
        isLoading = true
        pages.next().then(({ value, done = false }) => {
          isLoading = false
          if (signal.aborted) return
          setHasMore(!done)
          if (value) setMessages((known) => [...known, ...value])
          if (value?.length === 0) next()
        }, fail)
      }
      more.current = next
      next()
    }
    try {
      start()
    } catch (reason) {
      fail(reason)
    }
    return () => aborter.abort()
  }, [query])
  return { messages, hasMore, error, loadMore: useCallback(() => more.current(), []) }
}
