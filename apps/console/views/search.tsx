import { useEffect, useState } from 'preact/hooks'
import type { Message } from '#clients/typescript/src/mayfly.js'
import { useParameters, useSession, ViewLink } from '../navigation.js'
import { Empty, Field, FormValues } from '../parts/controls.js'
import { Time } from '../parts/format.js'
import { Failure } from '../parts/loading.js'
import { usePages } from '../parts/pages.js'
import { VirtualList } from '../parts/virtual-list.js'
import { visibleLine } from '../parts/visible-text.js'
import type { Session } from '../session.js'
import { text } from '../text.js'

/** Finds mail of all inboxes of the environment that are not protected, newest first. */
export function SearchView() {
  const session = useSession()
  const [parameters, change] = useParameters()
  const { q = '' } = parameters
  const found = useFound(session, q)
  const search = (event: SubmitEvent & { currentTarget: HTMLFormElement }) => {
    event.preventDefault()
    change({ q: new FormValues(event.currentTarget).text('q') })
  }
  return (
    <section class="list-view">
      <h1>{text.search.title}</h1>
      {/* The key shows the search of the URL again when it changes, and nothing else replaces what is being typed. */}
      <form class="filters" key={q} onSubmit={search}>
        <Field
          name="q"
          type="search"
          label={text.search.query}
          hint={text.search.hint}
          defaultValue={q}
          maxLength={1000}
        />
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

function useFound({ api }: Session, q: string) {
  const [messages, setMessages] = useState<readonly Message[]>([])
  const [error, setError] = useState<unknown>(null)
  const { hasMore, start, loadMore } = usePages<Message>(
    (page) => setMessages((known) => [...known, ...page]),
    setError,
  )
  useEffect(() => {
    const aborter = new AbortController()
    const { signal } = aborter
    setMessages([])
    setError(null)
    start(api.messages.pages({ ...(q === '' ? {} : { q }), order: 'desc', signal }), signal)
    return () => aborter.abort()
  }, [q])
  return { messages, hasMore, error, loadMore }
}
