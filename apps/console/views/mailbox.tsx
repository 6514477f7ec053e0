import type { ComponentChildren } from 'preact'
import { useEffect, useRef } from 'preact/hooks'
import { ApiError, type Inbox } from '#clients/typescript/src/mayfly.js'
import { useMailAccess, useParameters } from '../navigation.js'
import { CopyButton, Empty, Field, FormValues } from '../parts/controls.js'
import { Time } from '../parts/format.js'
import { Failure, Loading } from '../parts/loading.js'
import { VirtualList } from '../parts/virtual-list.js'
import { visibleLine } from '../parts/visible-text.js'
import { text } from '../text.js'
import { useMessageList, type ListedMessage, type MessageList } from './message-list.js'
import { Reader } from './reader.js'

/** The messages of an inbox, as they arrive, beside the one that is open. */
export function Mailbox({
  inboxId,
  canDeleteMessages,
  heading,
  emptyHint,
  afterEnd,
}: {
  inboxId: string
  canDeleteMessages: boolean
  heading: (inbox: Inbox, list: MessageList) => ComponentChildren
  /** Shown while there is no mail. */
  emptyHint?: (inbox: Inbox) => ComponentChildren
  /** Shown once the inbox has ended. */
  afterEnd: (reason: ApiError) => ComponentChildren
}) {
  const [{ message: openId }, change] = useParameters()
  const list = useMessageList(useMailAccess(), inboxId)
  const { inbox, messages } = list
  const index = messages.findIndex(({ id }) => id === openId)
  const hasAdded = useRef(false)
  /** Back from a message leads to the inbox, whichever messages were open meanwhile. */
  const open = (id: string) => {
    const isFirst = openId === undefined
    if (isFirst) hasAdded.current = true
    change({ message: id }, isFirst)
  }
  const close = () => {
    if (hasAdded.current) history.back()
    else change({ message: undefined })
  }
  const openAt = (position: number) => {
    const target = messages[position]
    if (target !== undefined) open(target.id)
  }
  useKeys({ j: () => openAt(index + 1), k: () => openAt(index < 0 ? 0 : index - 1) })

  // The inbox itself can be read without its password.
  const isPasswordWanted = list.error instanceof ApiError && list.error.code.startsWith('inbox-password')
  if (isPasswordWanted) {
    return <PasswordForm inboxId={inboxId} error={list.error} onEntered={list.reload} />
  }
  if (list.error instanceof ApiError && list.error.status === 410) {
    return <section>{afterEnd(list.error)}</section>
  }
  if (inbox === null) {
    return (
      <section>
        {list.error === null ? <Loading /> : <Failure error={list.error} retry={list.reload} />}
      </section>
    )
  }
  return (
    <section class={`mail-view ${openId === undefined ? '' : 'has-message'}`}>
      <div class="list">
        {heading(inbox, list)}
        {list.error !== null && <Failure error={list.error} retry={list.reload} />}
        {messages.length === 0 && !list.hasMore ? (
          <Empty title={text.mail.none}>
            <p>{text.mail.noneHint}</p>
            {emptyHint?.(inbox)}
          </Empty>
        ) : (
          <VirtualList
            label={text.mail.messages}
            items={messages}
            rowHeight={72}
            keyOf={({ id }) => id}
            onNearEnd={list.loadMore}
            selected={index}
            row={(message) => (
              <MessageRow message={message} isOpen={message.id === openId} onOpen={() => open(message.id)} />
            )}
          />
        )}
      </div>
      {openId !== undefined && (
        <Reader
          key={openId}
          inbox={inbox}
          messageId={openId}
          onPrevious={index > 0 ? () => openAt(index - 1) : undefined}
          onNext={index >= 0 && index < messages.length - 1 ? () => openAt(index + 1) : undefined}
          onClose={close}
          onDeleted={
            canDeleteMessages
              ? () => {
                  list.remove(openId)
                  const next = messages[index + 1]
                  if (next === undefined) close()
                  else open(next.id)
                }
              : undefined
          }
        />
      )}
    </section>
  )
}

/** Calls a function when its key is pressed, unless the user is typing. */
function useKeys(actions: Readonly<Record<string, () => void>>): void {
  useEffect(() => {
    const onKey = ({ key, ctrlKey, metaKey, altKey, target }: KeyboardEvent) => {
      const isTyping = target instanceof Element && target.closest('input, textarea, select, dialog') !== null
      if (!isTyping && !ctrlKey && !metaKey && !altKey) actions[key]?.()
    }
    addEventListener('keydown', onKey)
    return () => removeEventListener('keydown', onKey)
  })
}

function MessageRow({
  message: { subject, sender, received_at, codes, attachments },
  isOpen,
  onOpen,
}: {
  message: ListedMessage
  isOpen: boolean
  onOpen: () => void
}) {
  const [code] = codes
  return (
    <div class={`message-row ${isOpen ? 'open' : ''}`}>
      <button type="button" class="plain" onClick={onOpen} {...(isOpen ? { 'aria-current': 'true' } : {})}>
        <strong dir="auto">{visibleLine(subject ?? text.mail.noSubject)}</strong>
        <span class="sender">{visibleLine(sender)}</span>
        <small>
          <Time value={received_at} isRelative />
          {attachments.length > 0 && ` · ${text.mail.attachmentCount(attachments.length)}`}
        </small>
      </button>
      {code !== undefined && (
        <CopyButton value={code.value} label={text.mail.copyCode(code.value)}>
          {code.value}
        </CopyButton>
      )}
    </div>
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
    <section class="narrow">
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
