import {
  ArrowDown,
  ArrowLeft,
  ArrowUp,
  Download,
  ExternalLink,
  FlaskConical,
  Link as LinkIcon,
  Mail,
  Share2,
  Trash2,
} from 'lucide'
import type { RefObject } from 'preact'
import { useContext, useEffect, useState } from 'preact/hooks'
import type { Inbox, Message, Schemas } from '#clients/typescript/src/mayfly.js'
import { SessionContext, useMailAccess, ViewLink } from '../navigation.js'
import { CopyButton, FormDialog, Tabs } from '../parts/controls.js'
import { formatBytes, formatSubject, saveFile, Time } from '../parts/format.js'
import { Icon, IconButton } from '../parts/icon.js'
import { Show, useAction, Failure, useLoaded } from '../parts/loading.js'
import { visibleLine, visibleText } from '../parts/visible-text.js'
import { text } from '../text.js'
import { Attachments } from './attachments.js'
import { HtmlCheckPanel } from './html-check.js'
import { MessageDetails } from './message-details.js'
import { RenderedHtml } from './rendered-html.js'
import { ShareDialog } from './share-dialog.js'
import { Snippets } from './snippets.js'

/** One message, with all that Mayfly knows about it. */
export function Reader({
  article,
  inboxId,
  messageId,
  inboxName,
  onPrevious,
  onNext,
  onClose,
  onShown,
  onMarkUnread,
  onDelete,
}: {
  /** Gets the element, to focus it. */
  article: RefObject<HTMLElement | null>
  inboxId: string
  messageId: string
  /** The name of the inbox, if the list beside it is of several. */
  inboxName: string | undefined
  onPrevious: (() => void) | undefined
  onNext: (() => void) | undefined
  onClose: () => void
  /** Called when a message is shown, unless the page is hidden. */
  onShown: (message: Message) => void
  /** Not given if the message is unread. */
  onMarkUnread: (() => void) | undefined
  /** Not given if the message can't be deleted. */
  onDelete: (() => void) | undefined
}) {
  const { api, passwords } = useMailAccess()
  const mayShare = useContext(SessionContext)?.allows('inboxes') ?? false
  const [isSharing, setSharing] = useState(false)
  const download = useAction()
  const loaded = useLoaded(
    async (signal) => {
      const inbox = await api.inboxes.get(inboxId, { signal, password: passwords.get(inboxId) })
      return { inbox, message: await inbox.getMessage(messageId, { signal }) }
    },
    [messageId],
  )
  // Until the next mail is loaded, the former one is still there.
  const open = loaded.value?.message.id === messageId ? loaded.value : undefined
  useEffect(() => {
    if (open !== undefined && !document.hidden) onShown(open.message)
  }, [open?.message.id])
  const save = async () => {
    const source = await open?.message.raw()
    if (source !== undefined) saveFile(`${messageId}.eml`, [new Uint8Array(source)], 'message/rfc822')
  }
  return (
    <article class="reader" ref={article} tabIndex={-1} aria-label={text.mail.message}>
      <div class="toolbar">
        <IconButton of={ArrowLeft} class="close" label={text.close} onClick={onClose} />
        <IconButton
          of={ArrowUp}
          label={text.mail.previous}
          word={text.mail.newer}
          disabled={onPrevious === undefined}
          onClick={() => onPrevious?.()}
        />
        <IconButton
          of={ArrowDown}
          label={text.mail.next}
          word={text.mail.older}
          disabled={onNext === undefined}
          onClick={() => onNext?.()}
        />
        {inboxName !== undefined && (
          <ViewLink to={`/inboxes/${inboxId}`} parameters={{ message: messageId }} class="tag">
            <bdi>{visibleLine(inboxName)}</bdi>
          </ViewLink>
        )}
        <span class="space" />
        <IconButton
          of={Mail}
          label={text.mail.markUnread}
          word={text.mail.asUnread}
          disabled={onMarkUnread === undefined}
          onClick={() => onMarkUnread?.()}
        />
        <IconButton
          of={Download}
          label={text.mail.download}
          word={text.download}
          disabled={open === undefined}
          onClick={() => void download.run(save)}
        />
        {mayShare && (
          <IconButton
            of={Share2}
            label={text.share.title}
            word={text.share.action}
            disabled={open === undefined}
            onClick={() => setSharing(true)}
          />
        )}
        {onDelete !== undefined && (
          <IconButton
            of={Trash2}
            class="dangerous"
            label={text.mail.deleteTitle(1)}
            word={text.delete}
            onClick={onDelete}
          />
        )}
      </div>
      {download.error !== null && <Failure error={download.error} />}
      <Show loaded={{ ...loaded, value: open }}>{(value) => <OpenMessage key={messageId} {...value} />}</Show>
      {isSharing && open !== undefined && (
        <ShareDialog inbox={open.inbox} messageId={messageId} onClose={() => setSharing(false)} />
      )}
    </article>
  )
}

interface Open {
  inbox: Inbox
  message: Message
}

function OpenMessage({ inbox, message }: Open) {
  const { subject, warnings } = message
  const [isSubjectWhole, setSubjectWhole] = useState(false)
  const [support, setSupport] = useState<number>()
  const tabs = tabsOf(message, support)
  const [tab, setTab] = useState<Tab>(tabs[0]?.[0] ?? 'text')
  return (
    <>
      <h2 dir="auto" class={isSubjectWhole ? 'whole' : ''} onClick={() => setSubjectWhole(!isSubjectWhole)}>
        {formatSubject(subject)}
      </h2>
      <Addresses message={message} />
      <Chips inbox={inbox} message={message} />
      {warnings.length > 0 && (
        <ul class="warnings">
          {warnings.map(({ code, detail }) => (
            <li key={code + detail}>{visibleLine(detail)}</li>
          ))}
        </ul>
      )}
      <Tabs label={text.mail.parts} tabs={tabs} current={tab} onChange={setTab}>
        <Panel tab={tab} message={message} onChecked={setSupport} />
      </Tabs>
    </>
  )
}

type Tab = 'html' | 'html-source' | 'html-check' | 'text' | 'links' | 'headers' | 'raw' | 'details'

/** Those that have something to show, the most readable first. `support` is known once the HTML was checked. */
function tabsOf({ html, text: plain, links }: Message, support?: number): (readonly [Tab, string])[] {
  return [
    ...(html === null ? [] : ([['html', 'HTML']] as const)),
    ...(plain === null && html !== null ? [] : ([['text', text.mail.text]] as const)),
    ...(links.length === 0 ? [] : ([['links', text.mail.links(links.length)]] as const)),
    ...(html === null
      ? []
      : ([
          ['html-source', text.mail.htmlSource],
          ['html-check', support === undefined ? text.htmlCheck.title : text.htmlCheck.titleWith(support)],
        ] as const)),
    ['headers', text.mail.headers],
    ['raw', text.mail.source],
    ['details', text.mail.details],
  ]
}

function Panel({
  tab,
  message,
  onChecked,
}: {
  tab: Tab
  message: Message
  onChecked: (support: number) => void
}) {
  switch (tab) {
    case 'html':
      return <RenderedHtml inboxId={message.inbox_id} messageId={message.id} />
    case 'html-source':
      return (
        <>
          <CopyButton value={message.html ?? ''} label={text.copyWhat(text.mail.htmlSource)} />
          <LongText value={message.html ?? ''} />
        </>
      )
    case 'html-check':
      return <HtmlCheckPanel message={message} onChecked={onChecked} />
    case 'text':
      return message.text === null ? (
        <p>{text.mail.noText}</p>
      ) : (
        <div class="mail-text">
          <LongText value={message.text} dir="auto" />
        </div>
      )
    case 'links':
      return <Links message={message} />
    case 'headers':
      return <Headers message={message} />
    case 'raw':
      return <Source message={message} />
    case 'details':
      return <MessageDetails message={message} />
  }
}

/** The others are folded away. */
const MAX_MAILBOXES = 5

/** Who has written to whom, and when. */
function Addresses({
  message: { from, to, cc, reply_to, sender, recipient, received_at, size },
}: {
  message: Message
}) {
  const [{ name, address } = { name: null, address: sender }] = from
  const others: readonly (readonly [string, readonly Schemas['Mailbox'][]])[] = [
    [text.mail.to, to.length > 0 ? to : [{ name: null, address: recipient }]],
    ['Cc', cc],
    ['Reply-To', reply_to],
  ]
  return (
    <div class="addresses">
      <span class="avatar" aria-hidden="true">
        {initialOf(visibleLine(name ?? address))}
      </span>
      <div>
        <strong dir="auto">{visibleLine(name ?? address)}</strong>{' '}
        {name !== null && <span class="muted">{`<${visibleLine(address)}>`}</span>}
        {others.map(
          ([title, mailboxes]) =>
            mailboxes.length > 0 && (
              <div key={title} class="muted">
                {title} {writtenAll(mailboxes.slice(0, MAX_MAILBOXES))}
                {mailboxes.length > MAX_MAILBOXES && (
                  <details>
                    <summary>{text.mail.moreMailboxes(mailboxes.length - MAX_MAILBOXES)}</summary>
                    {writtenAll(mailboxes.slice(MAX_MAILBOXES))}
                  </details>
                )}
              </div>
            ),
        )}
      </div>
      <div class="muted when">
        <Time value={received_at} /> <span>{formatBytes(size)}</span>
      </div>
    </div>
  )
}

function initialOf(text: string): string {
  const [first] = new Intl.Segmenter().segment(text)
  return first?.segment.toUpperCase() ?? '?'
}

function writtenAll(mailboxes: readonly Schemas['Mailbox'][]): string {
  const written = mailboxes.map(({ name, address }) => (name === null ? address : `${name} <${address}>`))
  return visibleLine(written.join(', '))
}

/** Not what one clicks to confirm something. */
const SIDE_LINK = /unsubscribe|abmelden|désabonn|preferences|privacy|terms|view (?:it )?(?:in|on)/i

/** What most readers want: the codes, the main link, a test for this mail, and the attachments. */
function Chips({ inbox, message }: Open) {
  const { codes, links } = message
  const [isTesting, setTesting] = useState(false)
  const mainLinks = links.filter(
    ({ href, text: shown }) => /^https?:/.test(href) && !SIDE_LINK.test(shown ?? href),
  )
  const link = mainLinks.find(({ text: shown }) => shown !== null) ?? mainLinks[0]
  return (
    <div class="chips">
      {codes.map(({ value }) => (
        <CopyButton key={value} value={value} label={text.mail.copyCode(value)}>
          {value}
        </CopyButton>
      ))}
      {link !== undefined && (
        <a
          class="chip"
          href={link.href}
          target="_blank"
          rel="noopener noreferrer"
          title={visibleLine(link.href)}
        >
          <bdi>{visibleLine(link.text ?? link.href)}</bdi> <Icon of={ExternalLink} size={15} />
        </a>
      )}
      <button type="button" class="chip" onClick={() => setTesting(true)}>
        <Icon of={FlaskConical} size={15} /> {text.mail.copyAsTest}
      </button>
      <Attachments message={message} />
      {isTesting && (
        <FormDialog title={text.mail.copyAsTest} onClose={() => setTesting(false)}>
          <Snippets inbox={inbox} message={message} />
        </FormDialog>
      )}
    </div>
  )
}

function Links({ message }: { message: Message }) {
  const mayCheck = useContext(SessionContext)?.allows('inboxes') ?? false
  const { isRunning, error, run } = useAction()
  const [checked, setChecked] = useState<ReadonlyMap<string, Schemas['CheckedLink']>>(new Map())
  const check = async () => {
    const links = await message.checkLinks()
    setChecked(new Map(links.map((each) => [each.href, each])))
  }
  return (
    <>
      {/* Viewers, and links to a shared inbox, do not have the right to it. */}
      {mayCheck && (
        <p>
          <button type="button" disabled={isRunning} onClick={() => void run(check)}>
            <Icon of={LinkIcon} size={16} /> {isRunning ? text.working : text.linkCheck.action}
          </button>{' '}
          <span class="muted">{text.linkCheck.about}</span>
        </p>
      )}
      {error !== null && <Failure error={error} />}
      <ul class="plain-list">
        {message.links.map(({ href, text: shown }) => (
          <li key={href}>
            <LinkStatus checked={checked.get(href)} />{' '}
            {shown !== null && <strong dir="auto">{visibleLine(shown)} </strong>}
            <a href={href} target="_blank" rel="noopener noreferrer">
              {visibleLine(href)}
            </a>{' '}
            <CopyButton value={href} label={text.copyWhat(visibleLine(href))} />
          </li>
        ))}
      </ul>
    </>
  )
}

function LinkStatus({ checked }: { checked: Schemas['CheckedLink'] | undefined }) {
  if (checked === undefined) return null
  const { status, error } = checked
  const isGood = status !== null && status < 400 && error === null
  return (
    <span class={`tag ${isGood ? 'good' : 'bad'}`} title={error ?? ''}>
      {status ?? error}
    </span>
  )
}

function Headers({ message: { headers } }: { message: Message }) {
  return (
    <div class="scroll" tabIndex={0}>
      <table class="headers">
        <tbody>
          {headers.map(({ name, value }, index) => (
            <tr key={index}>
              <th scope="row">{visibleLine(name)}</th>
              <td dir="auto">{visibleLine(value)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  )
}

/** More is only offered as a file, because the page would become slow. */
const MAX_SHOWN_CHARACTERS = 1_000_000

/** The beginning of a text. With `dir="auto"`, each paragraph has the direction of its first letter. */
function LongText({
  value,
  isCut = value.length > MAX_SHOWN_CHARACTERS,
  dir,
}: {
  value: string
  isCut?: boolean
  dir?: 'auto'
}) {
  return (
    <>
      {isCut && <p>{text.mail.sourceCut(formatBytes(MAX_SHOWN_CHARACTERS))}</p>}
      <pre class="wrap" dir={dir}>
        {visibleText(value.slice(0, MAX_SHOWN_CHARACTERS))}
      </pre>
    </>
  )
}

function Source({ message }: { message: Message }) {
  const { passwords } = useMailAccess()
  const source = useLoaded(
    async (signal) => {
      const password = passwords.get(message.inbox_id)
      const bytes = await message.raw({ signal, password })
      return new TextDecoder('utf-8').decode(bytes.subarray(0, MAX_SHOWN_CHARACTERS))
    },
    [message.id],
  )
  return (
    <Show loaded={source}>
      {(shown) => (
        <>
          <CopyButton value={shown} label={text.copyWhat(text.mail.source)} />
          <LongText value={shown} isCut={message.size > MAX_SHOWN_CHARACTERS} />
        </>
      )}
    </Show>
  )
}
