import { render } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import { LocationProvider } from 'preact-iso'
import { Choice } from './parts/controls.js'
import { Failure, Loading, useAction, useRetry } from './parts/loading.js'
import { createPublicInbox } from './session.js'
import { Brand, InboxOfToken, useFragmentToken } from './shared-inbox.js'
import { text } from './text.js'

/*
 * The public page: an inbox for anyone, without an account. It shows a new address at once, or the inbox of the token in the
 * fragment of the URL, so a bookmark and the back button return to an inbox.
 */

type Duration = keyof typeof text.publicInbox.durations

const DURATIONS = Object.entries(text.publicInbox.durations) as [Duration, string][]

function PublicInboxPage() {
  const held = useFragmentToken()
  const [duration, setDuration] = useState<Duration>('1h')
  const { isRunning, error, run } = useAction()
  const create = (open: (url: string) => void) =>
    void run(async () => open(`/#${await createPublicInbox(duration)}`))
  const createFirst = () => create((url) => location.replace(url))
  useEffect(() => {
    if (held === null) createFirst()
  }, [])
  useRetry(held === null ? error : null, createFirst)
  const actions = (
    <>
      <div class="filters">
        <Choice
          label={text.publicInbox.lifetime}
          value={duration}
          options={DURATIONS}
          onChange={setDuration}
        />
        <button type="button" disabled={isRunning} onClick={() => create((url) => location.assign(url))}>
          {text.publicInbox.create}
        </button>
      </div>
      {error !== null && <Failure error={error} />}
    </>
  )
  return (
    <>
      <header class="bar">
        <Brand />
      </header>
      <main>
        {held !== null && (
          <InboxOfToken
            key={held.token}
            {...held}
            canErase
            title={text.publicInbox.title}
            about={text.publicInbox.about}
            actions={actions}
          />
        )}
        {held === null && error !== null && <Failure error={error} retry={createFirst} />}
        {held === null && error === null && <Loading />}
      </main>
      <Footer />
    </>
  )
}

function Footer() {
  const contact = document.querySelector<HTMLMetaElement>('meta[name="abuse-contact"]')?.content ?? ''
  return (
    <footer class="bar">
      <span>{text.publicInbox.receiveOnly}</span>
      {contact !== '' && (
        <span>
          {text.publicInbox.reportAbuse}{' '}
          <a href={/^https?:/i.test(contact) ? contact : `mailto:${contact}`}>{contact}</a>
        </span>
      )}
      <a href="/console">{text.publicInbox.console}</a>
    </footer>
  )
}

const root = document.getElementById('console')
if (root !== null) {
  render(
    <LocationProvider scope={/^\/$/}>
      <PublicInboxPage />
    </LocationProvider>,
    root,
  )
}
