import { useState } from 'preact/hooks'
import type { Inbox } from '#clients/typescript/src/mayfly.js'
import { CopyButton, Field, FormDialog, Secret } from '../parts/controls.js'
import { Time } from '../parts/format.js'
import { Failure, Show, useAction, useLoaded } from '../parts/loading.js'
import { sharedInboxUrl, urlOf, useSession } from '../navigation.js'
import { text } from '../text.js'

/** The link to an inbox or a mail of it, and links that give access to the inbox without an account. */
export function ShareDialog({
  inbox,
  messageId,
  onClose,
}: {
  inbox: Inbox
  messageId?: string
  onClose: () => void
}) {
  const { environment } = useSession()
  const viewUrl = location.origin + urlOf(`/inboxes/${inbox.id}`, { environment, message: messageId })
  const [link, setLink] = useState<{ id: string; url: string } | null>(null)
  const tokens = useLoaded((signal) => inbox.tokens.list({ signal }), [link])
  const { isRunning, error, run } = useAction()
  const revoke = async (id: string) => {
    if (!(await run(() => inbox.tokens.revoke(id)))) return
    if (link?.id === id) setLink(null)
    tokens.reload()
  }
  return (
    <FormDialog
      title={text.share.title}
      action={text.share.create}
      submit={async (values) => {
        const expiresIn = values.text('expires-in') || undefined
        const access = values.isChecked('owner') ? 'owner' : 'read'
        const { id, token } = await inbox.tokens.create({ access, expiresIn })
        setLink({ id, url: sharedInboxUrl(token, access) })
      }}
      onClose={onClose}
    >
      <h3>{text.share.signedIn}</h3>
      <p class="url">
        <code>{viewUrl}</code> <CopyButton value={viewUrl} label={text.copyWhat(text.share.view)} />
      </p>
      <h3>{text.share.anyone}</h3>
      <p>{text.share.about}</p>
      <Field
        label={text.share.expiresIn}
        hint={text.share.expiresInHint}
        name="expires-in"
        placeholder="2h"
      />
      <label class="check">
        <input type="checkbox" name="owner" /> {text.share.owner}
      </label>
      {link !== null && <Secret label={text.share.link} value={link.url} />}
      <h3>{text.share.links}</h3>
      {error !== null && <Failure error={error} />}
      <Show loaded={tokens}>
        {(list) => (
          <ul class="plain-list">
            {list.length === 0 && <li>{text.share.none}</li>}
            {list.map(({ id, access, expires_at }) => (
              <li key={id}>
                {text.share.access[access]}, {text.account.until} <Time value={expires_at} />{' '}
                <button
                  type="button"
                  disabled={isRunning}
                  aria-label={text.share.revokeWhat(id)}
                  onClick={() => void revoke(id)}
                >
                  {text.revoke}
                </button>
              </li>
            ))}
          </ul>
        )}
      </Show>
    </FormDialog>
  )
}
