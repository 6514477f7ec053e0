import { useEffect, useState } from 'preact/hooks'
import type { Message, QueryOptions } from '#clients/typescript/src/mayfly.js'
import { useParameters, useSession, ViewLink } from '../navigation.js'
import { Empty, Field, FormValues } from '../parts/controls.js'
import { parseLabels, Time } from '../parts/format.js'
import { Failure } from '../parts/loading.js'
import { usePages } from '../parts/pages.js'
import { VirtualList } from '../parts/virtual-list.js'
import { visibleLine } from '../parts/visible-text.js'
import type { Session } from '../session.js'
import { text } from '../text.js'

const FIELDS = [
  ['subject', text.search.subject, 'text'],
  ['sender', text.search.sender, 'text'],
  ['recipient', text.search.recipient, 'text'],
  ['text', text.mail.text, 'text'],
  ['label', text.label, 'text'],
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
  const search = (event: SubmitEvent & { currentTarget: HTMLFormElement }) => {
    event.preventDefault()
    const values = new FormValues(event.currentTarget)
    change(Object.fromEntries(FIELDS.map(([name]) => [name, values.text(name)])))
  }
  return (
    <section class="list-view">
      <h1>{text.search.title}</h1>
      {/* The key shows the filters of the URL again when it changes, and nothing else replaces what is being typed. */}
      <form class="filters" key={JSON.stringify(filters)} onSubmit={search}>
        {FIELDS.map(([name, label, type]) => (
          <Field key={name} name={name} label={label} type={type} defaultValue={filters[name] ?? ''} />
        ))}
        <button type="submit">{text.search.action}</button>
      </form>
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
                  <bdi>{visibleLine(subject ?? text.mail.noSubject)}</bdi>
                </ViewLink>
                <br />
                <small>{text.mail.fromTo(visibleLine(sender), visibleLine(recipient))}</small>
              </div>
              <Time value={received_at} isRelative />
            </div>
          )}
        />
      )}
    </section>
  )
}

function useFound({ api }: Session, filters: Filters) {
  const [messages, setMessages] = useState<readonly Message[]>([])
  const [error, setError] = useState<unknown>(null)
  const { hasMore, start, loadMore } = usePages<Message>(
    (page) => setMessages((known) => [...known, ...page]),
    setError,
  )
  const query = JSON.stringify(filters)
  useEffect(() => {
    const aborter = new AbortController()
    const { signal } = aborter
    setMessages([])
    setError(null)
    try {
      start(api.messages.pages({ ...optionsOf(filters), order: 'desc', signal }), signal)
    } catch (reason) {
      setError(reason)
    }
    return () => aborter.abort()
  }, [query])
  return { messages, hasMore, error, loadMore }
}

/** Throws an error in words if the label is not one. */
function optionsOf({ label = '', since, until, ...texts }: Filters): QueryOptions<'listMessages'> {
  const time = (local: string | undefined) => (local ? new Date(local).toISOString() : undefined)
  return { ...texts, labels: parseLabels(label), since: time(since), until: time(until) }
}
