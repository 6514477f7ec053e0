import type { ComponentChildren } from 'preact'
import { useContext } from 'preact/hooks'
import { ApiError, type Inbox } from '#clients/typescript/src/mayfly.js'
import { EnvironmentContext, useMailAccess } from '../navigation.js'
import { Empty, Field, FormValues } from '../parts/controls.js'
import { Failure, Loading } from '../parts/loading.js'
import { text } from '../text.js'
import { MailPanes } from './mail-panes.js'
import { useInboxMail, type MessageList } from './message-list.js'

/** The mail of an inbox, as it arrives. */
export function Mailbox({
  inboxId,
  canDelete,
  heading,
  emptyHint,
  afterEnd,
}: {
  inboxId: string
  canDelete: boolean
  heading: (inbox: Inbox, list: MessageList) => ComponentChildren
  /** Shown while there is no mail. */
  emptyHint?: (inbox: Inbox) => ComponentChildren
  /** Shown once the inbox has ended. */
  afterEnd: (reason: ApiError) => ComponentChildren
}) {
  const { inbox, ...list } = useInboxMail(useMailAccess(), inboxId)
  const listed = useContext(EnvironmentContext)?.inboxes.inboxes.find(({ id }) => id === inboxId)
  // The inbox itself can be read without its password.
  const isPasswordWanted = list.error instanceof ApiError && list.error.code.startsWith('inbox-password')
  if (isPasswordWanted) {
    return <PasswordForm inboxId={inboxId} error={list.error} onEntered={list.reload} />
  }
  if (list.error instanceof ApiError && list.error.status === 410) {
    return <section class="page">{afterEnd(list.error)}</section>
  }
  if (inbox === null) {
    return (
      <section class="page">
        {list.error === null ? <Loading /> : <Failure error={list.error} retry={list.reload} />}
      </section>
    )
  }
  return (
    <MailPanes
      list={list}
      total={listed?.message_count}
      inboxId={inboxId}
      canDelete={canDelete}
      heading={heading(inbox, list)}
      empty={
        <Empty title={text.mail.none}>
          <p>{text.mail.noneHint}</p>
          {emptyHint?.(inbox)}
        </Empty>
      }
    />
  )
}

/** Asks for the password of a protected inbox. It is kept in memory. */
function PasswordForm({
  inboxId,
  error,
  onEntered,
}: {
  inboxId: string
  error: unknown
  onEntered: () => void
}) {
  const { passwords } = useMailAccess()
  const submit = (event: SubmitEvent & { currentTarget: HTMLFormElement }) => {
    event.preventDefault()
    passwords.set(inboxId, new FormValues(event.currentTarget).text('password'))
    onEntered()
  }
  return (
    <section class="page narrow">
      <h1>{text.mail.passwordTitle}</h1>
      {passwords.has(inboxId) && <Failure error={error} />}
      <form onSubmit={submit}>
        <Field label={text.inboxes.password} name="password" type="password" required />
        <div class="actions">
          <button type="submit" class="primary">
            {text.mail.openInbox}
          </button>
        </div>
      </form>
    </section>
  )
}
