import { Keyboard, Paperclip, Trash2 } from 'lucide'
import type { ComponentChildren } from 'preact'
import { ApiError, type Inbox } from '#clients/typescript/src/mayfly.js'
import { useEffect, useRef, useState } from 'preact/hooks'
import { useDialog, useMailAccess, useParameters } from '../navigation.js'
import { CopyButton, FormDialog } from '../parts/controls.js'
import { formatSubject, Time } from '../parts/format.js'
import { Icon } from '../parts/icon.js'
import { useKeys } from '../parts/keys.js'
import { Failure, Loading } from '../parts/loading.js'
import { useSplitter } from '../parts/splitter.js'
import { useReadMail, useStored } from '../parts/stored.js'
import { VirtualList } from '../parts/virtual-list.js'
import { visibleLine } from '../parts/visible-text.js'
import { text } from '../text.js'
import type { ListedMessage, MessageList } from './message-list.js'
import { Reader } from './reader.js'

const ROW_HEIGHT = 52
/** The list and the reader are side by side; otherwise one of them is shown (console.css). */
const WIDE = matchMedia('(min-width: 48rem)')

/** A list of mail beside the mail that is open. On a wide page, the newest is open at first. */
export function MailPanes({
  list,
  total,
  canDelete,
  heading,
  empty,
  inboxId: listInboxId,
  inboxNames,
}: {
  list: MessageList
  /** How many mails there are, if that is known before all of them are listed. */
  total: number | undefined
  canDelete: boolean
  heading: ComponentChildren
  /** Shown while there is no mail. */
  empty: ComponentChildren
  /** The inbox of all mail in the list; not given if it is of several. */
  inboxId?: string
  /** The names of inboxes by their ids, if the list is of several. */
  inboxNames?: ReadonlyMap<string, string>
}) {
  const [{ message: openId, inbox: inboxInUrl }, change, urlWith] = useParameters()
  const { messages } = list
  const { isRead, markRead, markUnread } = useReadMail()
  const [picked, setPicked] = useState<ReadonlySet<string>>(new Set())
  const [isDeleting, setDeleting] = useState<readonly Deleted[]>([])
  const [wantsAllDeleted, setDeletingAll] = useDialog('delete-all')
  const isDeletingAll = wantsAllDeleted && canDelete
  const [knowsKeys, setKnowsKeys] = useStored('knows-keys', false)
  const { width, splitter } = useSplitter('list', text.widthOf(text.mail.messages), [260, 400, 720])
  const reader = useRef<HTMLElement>(null)
  const hasAdded = useRef(false)
  const index = messages.findIndex(({ id }) => id === openId)
  const current = messages[index]
  // An open mail may be further down than what is listed.
  const inboxId = listInboxId ?? current?.inbox_id ?? inboxInUrl

  const parametersOf = ({ id, inbox_id }: ListedMessage) => ({
    message: id,
    inbox: listInboxId === undefined ? inbox_id : undefined,
  })
  /** Back from a mail leads to the list, whichever mails were open meanwhile. */
  const open = (message: ListedMessage, adds = openId === undefined) => {
    if (openId === undefined) hasAdded.current = adds
    change(parametersOf(message), adds)
  }
  const close = () => {
    if (hasAdded.current) history.back()
    else change({ message: undefined, inbox: undefined })
    hasAdded.current = false
  }
  const openAt = (position: number) => {
    const target = messages[position]
    if (target !== undefined) open(target)
  }
  // Others have gone since they were selected.
  const pickedMessages = messages.filter(({ id }) => picked.has(id))
  const pick = (id: string) => {
    const next = new Set(picked)
    if (!next.delete(id)) next.add(id)
    setPicked(next)
  }
  const onDeleted = (ids: ReadonlySet<string>) => {
    list.remove(ids)
    setPicked(new Set([...picked].filter((id) => !ids.has(id))))
    const next = messages.slice(index + 1).find(({ id }) => !ids.has(id)) ?? messages[index - 1]
    reader.current?.focus()
    if (openId === undefined || !ids.has(openId)) return
    if (next === undefined || ids.has(next.id)) close()
    else open(next)
  }
  const deleteOpen = () => {
    if (openId !== undefined && inboxId !== undefined) setDeleting([{ id: openId, inbox_id: inboxId }])
  }
  const deletePicked = () => setDeleting(pickedMessages)
  const setAllPicked = (isPicked: boolean) => setPicked(new Set(isPicked ? messages.map(({ id }) => id) : []))
  const markOpenUnread = () => {
    if (current === undefined) return
    markUnread(current)
    if (!WIDE.matches) close()
  }
  useKeys({
    j: () => openAt(index + 1),
    k: () => openAt(Math.max(index - 1, 0)),
    o: () => (openId === undefined ? openAt(0) : reader.current?.focus()),
    u: () => {
      if (!WIDE.matches && openId !== undefined) close()
      else document.querySelector<HTMLElement>('.message-row.open a')?.focus()
    },
    U: markOpenUnread,
    x: () => {
      if (openId !== undefined && canDelete) pick(openId)
    },
    '#': () => {
      if (!canDelete) return
      if (pickedMessages.length > 0) deletePicked()
      else deleteOpen()
    },
  })
  const [newest] = messages
  const count = list.hasMore ? total : messages.length
  const isCounting = isDeletingAll && list.hasMore && messages.length < MAX_DELETED
  // The first page may be empty after its mail was deleted.
  useEffect(() => {
    if (isCounting || (messages.length === 0 && list.hasMore)) list.loadMore()
  }, [messages, list.hasMore, isCounting])
  useEffect(() => {
    if (openId === undefined && newest !== undefined && WIDE.matches) open(newest, false)
  }, [openId, newest?.id])

  const arrived = messages.find(({ hasArrived }) => hasArrived)
  return (
    <section class={`mail-view ${openId === undefined ? '' : 'has-message'}`}>
      <div class="list" style={{ '--list-width': `${width}px` }}>
        {heading}
        {canDelete && messages.length > 0 && (
          <p class="picked">
            <label>
              <input
                type="checkbox"
                checked={pickedMessages.length === messages.length}
                onChange={({ currentTarget }) => setAllPicked(currentTarget.checked)}
              />{' '}
              {pickedMessages.length === 0 ? text.mail.selectAll : text.mail.selected(pickedMessages.length)}
            </label>
            <span class="count">{count !== undefined && text.mail.count(count)}</span>
            <button
              type="button"
              class="dangerous"
              onClick={pickedMessages.length > 0 ? deletePicked : () => setDeletingAll(true)}
            >
              <Icon of={Trash2} size={16} /> {pickedMessages.length > 0 ? text.delete : text.mail.deleteAll}
            </button>
          </p>
        )}
        {list.error !== null && <Failure error={list.error} retry={list.reload} />}
        {messages.length === 0 && !list.hasMore && list.error === null && empty}
        {messages.length === 0 && list.hasMore && list.error === null && <Loading />}
        {messages.length > 0 && (
          <VirtualList
            label={text.mail.messages}
            items={messages}
            rowHeight={ROW_HEIGHT}
            keyOf={({ id }) => id}
            onNearEnd={list.loadMore}
            selected={index}
            row={(message) => (
              <MessageRow
                message={message}
                isOpen={message.id === openId}
                isUnread={!isRead(message)}
                url={urlWith(parametersOf(message))}
                onOpen={() => open(message)}
                isPicked={picked.has(message.id)}
                onPick={canDelete ? () => pick(message.id) : undefined}
                inboxName={inboxNames && (inboxNames.get(message.inbox_id) ?? message.recipient)}
              />
            )}
          />
        )}
        {!knowsKeys && canDelete && messages.length > 1 && (
          <p class="hint keys-hint">
            <Icon of={Keyboard} size={16} /> {text.shortcuts.hint}{' '}
            <button type="button" class="plain" onClick={() => setKnowsKeys(true)}>
              {text.close}
            </button>
          </p>
        )}
        <p class="hidden" role="status">
          {arrived !== undefined &&
            text.mail.arrived(visibleLine(arrived.from), formatSubject(arrived.subject))}
        </p>
      </div>
      {messages.length > 0 && splitter}
      {openId !== undefined && inboxId !== undefined && (
        <Reader
          article={reader}
          inboxId={inboxId}
          messageId={openId}
          inboxName={inboxNames && (inboxNames.get(inboxId) ?? current?.recipient)}
          onPrevious={index > 0 ? () => openAt(index - 1) : undefined}
          onNext={index >= 0 && index < messages.length - 1 ? () => openAt(index + 1) : undefined}
          onClose={close}
          onShown={markRead}
          onMarkUnread={current !== undefined && isRead(current) ? markOpenUnread : undefined}
          onDelete={canDelete ? deleteOpen : undefined}
        />
      )}
      {isDeleting.length > 0 && (
        <DeleteDialog
          title={text.mail.deleteTitle(isDeleting.length)}
          messages={isDeleting}
          onClose={() => setDeleting([])}
          onDeleted={onDeleted}
        />
      )}
      {/* The list shows an error of its own. */}
      {isDeletingAll && list.error === null && (
        <DeleteDialog
          title={
            isCounting
              ? text.mail.counting(messages.length)
              : list.hasMore
                ? text.mail.deleteNewestTitle(MAX_DELETED)
                : text.mail.deleteTitle(messages.length)
          }
          messages={isCounting ? [] : messages.slice(0, MAX_DELETED)}
          onClose={() => setDeletingAll(false)}
          onDeleted={onDeleted}
        />
      )}
    </section>
  )
}

function MessageRow({
  message: { id, subject, from, preview, received_at, code, hasAttachments, hasArrived },
  isOpen,
  isUnread,
  url,
  onOpen,
  isPicked,
  onPick,
  inboxName,
}: {
  message: ListedMessage
  isOpen: boolean
  isUnread: boolean
  url: string
  onOpen: () => void
  isPicked: boolean
  onPick: (() => void) | undefined
  inboxName: string | undefined
}) {
  const shownSubject = formatSubject(subject)
  const flags = [isOpen && 'open', isUnread && 'unread', hasArrived && 'arrived'].filter(Boolean)
  const follow = (event: MouseEvent) => {
    // The browser opens other clicks in another tab or window.
    if (event.button !== 0 || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return
    event.preventDefault()
    event.stopPropagation()
    onOpen()
  }
  return (
    <div class={`message-row ${flags.join(' ')}`} data-message={id}>
      {onPick !== undefined && (
        <input
          type="checkbox"
          checked={isPicked}
          onChange={onPick}
          aria-label={text.mail.selectWhat(shownSubject)}
        />
      )}
      <a href={url} onClick={follow} {...(isOpen ? { 'aria-current': 'true' } : {})}>
        <bdi class="from">{visibleLine(from)}</bdi>
        <span class="content" dir="auto">
          <span class="subject">{shownSubject}</span> <bdi class="preview">{visibleLine(preview)}</bdi>
        </span>
        {isUnread && <span class="hidden">{text.mail.unread}</span>}
      </a>
      <span class="when">
        {inboxName !== undefined && <bdi class="tag">{visibleLine(inboxName)}</bdi>}
        <Time value={received_at} isShort />
      </span>
      <span class="marks">
        {hasAttachments && (
          <span title={text.mail.hasAttachments}>
            <Icon of={Paperclip} size={15} />
            <span class="hidden">{text.mail.hasAttachments}</span>
          </span>
        )}
        {code !== undefined && (
          <CopyButton value={code} label={text.mail.copyCode(code)}>
            {code}
          </CopyButton>
        )}
      </span>
    </div>
  )
}

type Deleted = Pick<ListedMessage, 'id' | 'inbox_id'>

/** At most so many mails are deleted together. */
const MAX_DELETED = 20_000
/** Browsers open six connections to a server, of which streams need two. */
const AT_ONCE = 4
/** The first mails are deleted without a pause, the others at this pace: a session has 1,200 requests a minute. */
const UNPACED = 300
const PACE_MS = 60
/** A deletion may wait until the session has requests again. */
const DELETION_WITHIN_MS = 120_000

/** Deletes mail, and shows how far it is. If it is closed, the rest stays. */
function DeleteDialog({
  title,
  messages,
  onClose,
  onDeleted,
}: {
  title: string
  /** May change until the deletion starts. While it is empty, there is no button to delete. */
  messages: readonly Deleted[]
  onClose: () => void
  onDeleted: (ids: ReadonlySet<string>) => void
}) {
  const { api, passwords } = useMailAccess()
  const [started, setStarted] = useState<{ title: string; messages: readonly Deleted[] } | null>(null)
  const [done, setDone] = useState(0)
  const [aborter] = useState(() => new AbortController())
  useEffect(() => () => aborter.abort(), [])
  const chosen = started ?? { title, messages }
  const submit = async () => {
    setStarted(chosen)
    const options = { signal: aborter.signal, timeoutMs: DELETION_WITHIN_MS }
    const inboxes = new Map<string, Promise<Inbox>>()
    const erase = async ({ id, inbox_id }: Deleted) => {
      const opened =
        inboxes.get(inbox_id) ?? api.inboxes.get(inbox_id, { ...options, password: passwords.get(inbox_id) })
      inboxes.set(inbox_id, opened)
      try {
        await (await opened).deleteMessage(id, options)
      } catch (error) {
        // It has gone meanwhile, perhaps with its inbox.
        if (!(error instanceof ApiError && error.status === 410)) throw error
      }
    }
    const startedMs = performance.now()
    // After a failure, it continues where it was.
    for (let from = done; from < chosen.messages.length; from += AT_ONCE) {
      const aheadMs = (from - done - UNPACED) * PACE_MS - (performance.now() - startedMs)
      if (aheadMs > 1_000) await new Promise((resolve) => setTimeout(resolve, aheadMs))
      await Promise.all(chosen.messages.slice(from, from + AT_ONCE).map(erase))
      setDone(Math.min(from + AT_ONCE, chosen.messages.length))
    }
  }
  const finish = (count: number) => {
    onClose()
    if (count > 0) onDeleted(new Set(chosen.messages.slice(0, count).map(({ id }) => id)))
  }
  const isMany = chosen.messages.length > 1
  return (
    <FormDialog
      title={chosen.title}
      action={chosen.messages.length > 0 ? text.delete : undefined}
      isDangerous
      submit={submit}
      onClose={() => finish(done)}
      onDone={() => finish(chosen.messages.length)}
    >
      <p>{text.mail.deleteWarning}</p>
      {isMany && started !== null && (
        <progress max={chosen.messages.length} value={done} aria-label={text.working} />
      )}
    </FormDialog>
  )
}
