import { useEffect, useMemo, useState } from 'preact/hooks'
import { Mayfly, type Inbox } from '#clients/typescript/src/mayfly.js'
import { MailAccessContext } from './navigation.js'
import { Choice, CopyButton, FormDialog } from './parts/controls.js'
import { formatDuration, useNow } from './parts/format.js'
import { Failure, useAction } from './parts/loading.js'
import { createPublicInbox, requestRendering, type MailAccess, type PublicDuration } from './session.js'
import { text } from './text.js'
import { Mailbox } from './views/mailbox.js'

/*
 * The page of one inbox for whoever has its token, without an account. The token is in the fragment of the URL, which
 * browsers don't send, so it is in no log. On the public page a new inbox is made if there is none.
 */

const DURATIONS = [
  ['10m', text.publicInbox.durations['10m']],
  ['1h', text.publicInbox.durations['1h']],
  ['1d', text.publicInbox.durations['1d']],
] as const

/** A token has the id of its inbox. */
const TOKEN = /^#mft_([0-9a-z]{26})_[\w-]+$/

function useFragment(): [string, (fragment: string) => void] {
  const [fragment, setFragment] = useState(location.hash)
  useEffect(() => {
    const update = () => setFragment(location.hash)
    addEventListener('hashchange', update)
    return () => removeEventListener('hashchange', update)
  }, [])
  const change = (next: string) => {
    history.replaceState(null, '', location.pathname + next)
    setFragment(next)
  }
  return [fragment, change]
}

/** `canCreate` on the public page, where anyone can have an inbox. */
export function PublicInboxView({ canCreate }: { canCreate: boolean }) {
  const [fragment, setFragment] = useFragment()
  const [duration, setDuration] = useState<PublicDuration>('10m')
  const { isRunning, error, run } = useAction()
  const create = (chosen: PublicDuration) =>
    void run(async () => setFragment(`#${await createPublicInbox(chosen)}`))
  useEffect(() => {
    if (canCreate && fragment === '') create(duration)
  }, [])
  return (
    <>
      <header class="bar">
        <span class="brand">Mayfly</span>
        {canCreate && (
          <>
            <Choice
              label={text.publicInbox.duration}
              value={duration}
              options={DURATIONS}
              onChange={setDuration}
            />
            <button type="button" class="primary" disabled={isRunning} onClick={() => create(duration)}>
              {text.publicInbox.new}
            </button>
          </>
        )}
      </header>
      <main>
        {error !== null && <Failure error={error} retry={() => create(duration)} />}
        {TOKEN.test(fragment) ? (
          <SharedInbox key={fragment} token={fragment.slice(1)} />
        ) : (
          !isRunning && error === null && <p class="empty">{text.publicInbox.noToken}</p>
        )}
      </main>
    </>
  )
}

function SharedInbox({ token }: { token: string }) {
  const access = useMemo(() => accessWith(token), [token])
  const [, suffix = ''] = TOKEN.exec(`#${token}`) ?? []
  return (
    <MailAccessContext.Provider value={access}>
      <Mailbox
        inboxId={`inb_${suffix}`}
        canDeleteMessages={false}
        heading={(inbox, { reload }) => <Heading inbox={inbox} onErased={reload} />}
        afterEnd={<p class="empty">{text.publicInbox.erased}</p>}
      />
    </MailAccessContext.Provider>
  )
}

function accessWith(token: string): MailAccess {
  const passwords = new Map<string, string>()
  const api = new Mayfly({ url: location.origin, apiKey: token })
  const send: typeof fetch = (input, init = {}) => {
    const headers = new Headers(init.headers)
    headers.set('authorization', `Bearer ${token}`)
    return fetch(input, { ...init, headers })
  }
  return {
    api,
    passwords,
    render: (inboxId, messageId, hasRemoteContent) => {
      const message = { inbox_id: inboxId, message_id: messageId, remote: hasRemoteContent }
      return requestRendering(send, message, passwords.get(inboxId))
    },
  }
}

function Heading({ inbox, onErased }: { inbox: Inbox; onErased: () => void }) {
  const now = useNow(1_000)
  const [isErasing, setErasing] = useState(false)
  return (
    <header class="inbox-heading">
      <h1>{text.publicInbox.title}</h1>
      <p>{text.publicInbox.about}</p>
      <p class="address large">
        <code>{inbox.address}</code>
        <CopyButton value={inbox.address} label={text.copyWhat(inbox.address)} />
      </p>
      <p>
        {text.inboxes.endsIn(formatDuration(Math.max(Date.parse(inbox.expires_at) - now, 0)))}{' '}
        <button type="button" onClick={() => setErasing(true)}>
          {text.publicInbox.erase}
        </button>
      </p>
      {isErasing && (
        <FormDialog
          title={text.publicInbox.eraseTitle}
          action={text.publicInbox.erase}
          isDangerous
          submit={() => inbox.delete()}
          onClose={(isDone) => {
            setErasing(false)
            if (isDone) onErased()
          }}
        >
          <p>{text.inboxes.deleteWarning}</p>
        </FormDialog>
      )}
    </header>
  )
}
