import type { ComponentChildren } from 'preact'
import { useEffect, useMemo, useState } from 'preact/hooks'
import { Mayfly, type Inbox } from '#clients/typescript/src/mayfly.js'
import { MailAccessContext, useParameters } from './navigation.js'
import { CopyButton, FormDialog } from './parts/controls.js'
import { TimeLeft } from './parts/format.js'
import { Logo } from './parts/logo.js'
import { fetchWith, requestRendering, type MailAccess } from './session.js'
import { text } from './text.js'
import { Mailbox } from './views/mailbox.js'

/*
 * The page of one inbox for whoever has its token, without an account. The token is in the fragment of the URL, which
 * browsers don't send, so it is in no log.
 */

/** A token has the id of its inbox. */
const TOKEN = /^#(mft_([0-9a-z]{26})_[\w-]+)$/

interface FragmentToken {
  token: string
  inboxId: string
}

/** The token in the fragment of the URL; null if there is none. */
export function useFragmentToken(): FragmentToken | null {
  const [fragment, setFragment] = useState(location.hash)
  useEffect(() => {
    const update = () => setFragment(location.hash)
    addEventListener('hashchange', update)
    return () => removeEventListener('hashchange', update)
  }, [])
  const [, token, suffix = ''] = TOKEN.exec(fragment) ?? []
  return token === undefined ? null : { token, inboxId: `inb_${suffix}` }
}

/** The name of the service on the pages without a session. */
export function Brand() {
  return (
    <span class="brand">
      <Logo /> <span>Mayfly</span>
    </span>
  )
}

export function SharedInboxView() {
  const held = useFragmentToken()
  const [{ access }] = useParameters()
  return (
    <>
      <header class="bar">
        <Brand />
      </header>
      <main>
        {held === null ? (
          <p class="empty">{text.sharedInbox.noToken}</p>
        ) : (
          <InboxOfToken
            key={held.token}
            {...held}
            canErase={access === 'owner'}
            title={text.sharedInbox.title}
            about={text.sharedInbox.about}
          />
        )}
      </main>
    </>
  )
}

/** The mail of the inbox of a token. */
export function InboxOfToken({
  token,
  inboxId,
  canErase,
  title,
  about,
  actions,
}: FragmentToken & {
  canErase: boolean
  title: string
  about: string
  /** Shown below the address, and once the inbox has ended. */
  actions?: ComponentChildren
}) {
  const access = useMemo(() => accessWith(token), [token])
  return (
    <MailAccessContext.Provider value={access}>
      <Mailbox
        inboxId={inboxId}
        canDelete={false}
        heading={(inbox, { reload }) => (
          <header class="list-heading inbox-heading">
            <h1>{title}</h1>
            <p>{about}</p>
            <Address inbox={inbox} canErase={canErase} onErased={reload} />
            {actions}
          </header>
        )}
        afterEnd={() => (
          <>
            <p class="empty">{text.sharedInbox.erased}</p>
            {actions}
          </>
        )}
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

function Address({ inbox, canErase, onErased }: { inbox: Inbox; canErase: boolean; onErased: () => void }) {
  const [isErasing, setErasing] = useState(false)
  return (
    <>
      <p class="address large">
        <code>{inbox.address}</code>
        <CopyButton value={inbox.address} label={text.copyWhat(inbox.address)} />
      </p>
      <p>
        <TimeLeft expiresAt={inbox.expires_at} />{' '}
        {canErase && (
          <button type="button" onClick={() => setErasing(true)}>
            {text.sharedInbox.erase}
          </button>
        )}
      </p>
      {isErasing && (
        <FormDialog
          title={text.sharedInbox.eraseTitle}
          action={text.sharedInbox.erase}
          isDangerous
          submit={() => inbox.delete()}
          onClose={() => setErasing(false)}
          onDone={() => {
            setErasing(false)
            onErased()
          }}
        >
          <p>{text.inboxes.deleteWarning}</p>
        </FormDialog>
      )}
    </>
  )
}
