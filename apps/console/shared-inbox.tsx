import { useEffect, useMemo, useState } from 'preact/hooks'
import { Mayfly, type Inbox } from '#clients/typescript/src/mayfly.js'
import { MailAccessContext } from './navigation.js'
import { CopyButton, FormDialog } from './parts/controls.js'
import { formatDuration, useNow } from './parts/format.js'
import { fetchWith, requestRendering, type MailAccess } from './session.js'
import { text } from './text.js'
import { Mailbox } from './views/mailbox.js'

/*
 * The page of one inbox for whoever has its token, without an account. The token is in the fragment of the URL, which
 * browsers don't send, so it is in no log.
 */

/** A token has the id of its inbox. */
const TOKEN = /^#(mft_([0-9a-z]{26})_[\w-]+)$/

export function SharedInboxView() {
  const [fragment, setFragment] = useState(location.hash)
  useEffect(() => {
    const update = () => setFragment(location.hash)
    addEventListener('hashchange', update)
    return () => removeEventListener('hashchange', update)
  }, [])
  const [, token, suffix] = TOKEN.exec(fragment) ?? []
  return (
    <>
      <header class="bar">
        <span class="brand">Mayfly</span>
      </header>
      <main>
        {token === undefined ? (
          <p class="empty">{text.sharedInbox.noToken}</p>
        ) : (
          <SharedInbox key={token} token={token} inboxId={`inb_${suffix}`} />
        )}
      </main>
    </>
  )
}

function SharedInbox({ token, inboxId }: { token: string; inboxId: string }) {
  const access = useMemo(() => accessWith(token), [token])
  return (
    <MailAccessContext.Provider value={access}>
      <Mailbox
        inboxId={inboxId}
        canDeleteMessages={false}
        heading={(inbox, { reload }) => <Heading inbox={inbox} onErased={reload} />}
        afterEnd={<p class="empty">{text.sharedInbox.erased}</p>}
      />
    </MailAccessContext.Provider>
  )
}

function accessWith(token: string): MailAccess {
  const passwords = new Map<string, string>()
  return {
    api: new Mayfly({ url: location.origin, apiKey: token }),
    passwords,
    render: (inboxId, messageId, hasRemoteContent) => {
      const message = { inbox_id: inboxId, message_id: messageId, remote: hasRemoteContent }
      const send: typeof fetch = (input, init) => fetchWith(token, input, init)
      return requestRendering(send, message, passwords.get(inboxId))
    },
  }
}

function Heading({ inbox, onErased }: { inbox: Inbox; onErased: () => void }) {
  const now = useNow(1_000)
  const [isErasing, setErasing] = useState(false)
  return (
    <header class="inbox-heading">
      <h1>{text.sharedInbox.title}</h1>
      <p>{text.sharedInbox.about}</p>
      <p class="address large">
        <code>{inbox.address}</code>
        <CopyButton value={inbox.address} label={text.copyWhat(inbox.address)} />
      </p>
      <p>
        {text.inboxes.endsIn(formatDuration(Math.max(Date.parse(inbox.expires_at) - now, 0)))}{' '}
        <button type="button" onClick={() => setErasing(true)}>
          {text.sharedInbox.erase}
        </button>
      </p>
      {isErasing && (
        <FormDialog
          title={text.sharedInbox.eraseTitle}
          action={text.sharedInbox.erase}
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
