import { useState } from 'preact/hooks'
import type { Inbox, Message } from '#clients/typescript/src/mayfly.js'
import { attachmentName } from '#libs/mail/attachment-name.js'
import { useMailAccess } from '../navigation.js'
import { CopyButton, FormDialog, Tabs } from '../parts/controls.js'
import { formatBytes, saveFile, Time } from '../parts/format.js'
import { Show, useAction, Failure, useLoaded } from '../parts/loading.js'
import { visibleLine, visibleText } from '../parts/visible-text.js'
import { text } from '../text.js'
import { MessageDetails } from './message-details.js'
import { RenderedHtml } from './rendered-html.js'
import { Snippets } from './snippets.js'

type Tab = 'html' | 'text' | 'links' | 'attachments' | 'headers' | 'source' | 'details' | 'snippet'

/** One message, with all that Mayfly knows about it. */
export function Reader({
  inbox,
  messageId,
  onPrevious,
  onNext,
  onClose,
  onDeleted,
}: {
  inbox: Inbox
  messageId: string
  onPrevious: (() => void) | undefined
  onNext: (() => void) | undefined
  onClose: () => void
  /** Not given if the message can't be deleted. */
  onDeleted: (() => void) | undefined
}) {
  const [isDeleting, setDeleting] = useState(false)
  const download = useAction()
  const message = useLoaded((signal) => inbox.getMessage(messageId, { signal }), [messageId])
  const save = async () => {
    const source = await message.value?.raw()
    if (source !== undefined) saveFile(`${messageId}.eml`, [new Uint8Array(source)], 'message/rfc822')
  }
  return (
    <article class="reader">
      <div class="buttons">
        <button type="button" onClick={onClose}>
          {text.close}
        </button>
        <button
          type="button"
          onClick={onPrevious}
          disabled={onPrevious === undefined}
          title={text.mail.previousKey}
        >
          {text.mail.previous}
        </button>
        <button type="button" onClick={onNext} disabled={onNext === undefined} title={text.mail.nextKey}>
          {text.mail.next}
        </button>
        <button type="button" onClick={() => void download.run(save)} disabled={message.value === undefined}>
          {text.mail.download}
        </button>
        {onDeleted !== undefined && (
          <button type="button" onClick={() => setDeleting(true)} disabled={message.value === undefined}>
            {text.delete}
          </button>
        )}
      </div>
      {download.error !== null && <Failure error={download.error} />}
      <Show loaded={message}>{(value) => <OpenMessage inbox={inbox} message={value} />}</Show>
      {isDeleting && (
        <FormDialog
          title={text.mail.deleteTitle}
          action={text.delete}
          isDangerous
          submit={() => inbox.deleteMessage(messageId)}
          onClose={() => setDeleting(false)}
          onDone={() => {
            setDeleting(false)
            onDeleted?.()
          }}
        >
          <p>{text.mail.deleteWarning}</p>
        </FormDialog>
      )}
    </article>
  )
}

function OpenMessage({ inbox, message }: { inbox: Inbox; message: Message }) {
  const { html, links, attachments, codes, subject, sender, recipient, received_at, warnings } = message
  const [tab, setTab] = useState<Tab>(html === null ? 'text' : 'html')
  const tabs = [
    ...(html === null ? [] : [['html', 'HTML'] as const]),
    ['text', text.mail.text] as const,
    ['links', text.mail.links(links.length)] as const,
    ['attachments', text.mail.attachments(attachments.length)] as const,
    ['headers', text.mail.headers] as const,
    ['source', text.mail.source] as const,
    ['details', text.mail.details] as const,
    ['snippet', text.mail.snippet] as const,
  ]
  return (
    <>
      <h2 dir="auto">{visibleLine(subject ?? text.mail.noSubject)}</h2>
      <p>
        {text.mail.fromTo(visibleLine(sender), visibleLine(recipient))} · <Time value={received_at} />
      </p>
      {codes.length > 0 && (
        <p class="codes">
          {text.mail.codes}:{' '}
          {codes.map(({ value }) => (
            <CopyButton key={value} value={value} label={text.mail.copyCode(value)}>
              {value}
            </CopyButton>
          ))}
        </p>
      )}
      {warnings.length > 0 && (
        <ul class="warnings">
          {warnings.map(({ code, detail }) => (
            <li key={code + detail}>{visibleLine(detail)}</li>
          ))}
        </ul>
      )}
      <Tabs label={text.mail.parts} tabs={tabs} current={tab} onChange={setTab}>
        <Panel tab={tab} inbox={inbox} message={message} />
      </Tabs>
    </>
  )
}

function Panel({ tab, inbox, message }: { tab: Tab; inbox: Inbox; message: Message }) {
  switch (tab) {
    case 'html':
      return <RenderedHtml inboxId={inbox.id} messageId={message.id} />
    case 'text':
      return message.text === null ? <p>{text.mail.noText}</p> : <MailText value={message.text} />
    case 'links':
      return <Links message={message} />
    case 'attachments':
      return <Attachments message={message} />
    case 'headers':
      return <Headers message={message} />
    case 'source':
      return <Source message={message} />
    case 'details':
      return <MessageDetails message={message} />
    case 'snippet':
      return <Snippets inbox={inbox} message={message} />
  }
}

/** Each paragraph has the direction of its first letter. */
function MailText({ value }: { value: string }) {
  return (
    <pre class="wrap" dir="auto">
      {visibleText(value)}
    </pre>
  )
}

function Links({ message: { links } }: { message: Message }) {
  if (links.length === 0) return <p>{text.mail.noLinks}</p>
  return (
    <ul class="plain-list">
      {links.map(({ href, text: shown }) => (
        <li key={href}>
          {shown !== null && <strong dir="auto">{visibleLine(shown)} </strong>}
          <a href={href} target="_blank" rel="noopener noreferrer">
            {visibleLine(href)}
          </a>{' '}
          <CopyButton value={href} label={text.copyWhat(visibleLine(href))} />
        </li>
      ))}
    </ul>
  )
}

function Attachments({ message: { attachments } }: { message: Message }) {
  const { isRunning, error, run } = useAction()
  if (attachments.length === 0) return <p>{text.mail.noAttachments}</p>
  const save = async (attachment: Message['attachments'][number]) => {
    // The declared type is not used, so that the browser never opens the file as a page.
    saveFile(
      attachmentName(attachment.filename, attachment.content_type),
      [new Uint8Array(await attachment.bytes())],
      'application/octet-stream',
    )
  }
  return (
    <>
      {error !== null && <Failure error={error} />}
      <ul class="plain-list">
        {attachments.map((each) => (
          <li key={each.index}>
            <strong dir="auto">{visibleLine(attachmentName(each.filename, each.content_type))}</strong>{' '}
            {each.content_type}, {formatBytes(each.size)}{' '}
            <button type="button" disabled={isRunning} onClick={() => void run(() => save(each))}>
              {text.download}
            </button>
            <br />
            <small>SHA-256 {each.sha256}</small>
          </li>
        ))}
      </ul>
    </>
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

/** A source that is larger is only offered as a file, because the page would become slow. */
const MAX_SHOWN_BYTES = 1_000_000

function Source({ message }: { message: Message }) {
  const { passwords } = useMailAccess()
  const source = useLoaded(
    async (signal) => {
      const password = passwords.get(message.inbox_id)
      const bytes = await message.raw({ signal, password })
      return new TextDecoder('utf-8').decode(bytes.subarray(0, MAX_SHOWN_BYTES))
    },
    [message.id],
  )
  return (
    <Show loaded={source}>
      {(shown) => (
        <>
          {message.size > MAX_SHOWN_BYTES && <p>{text.mail.sourceCut(formatBytes(MAX_SHOWN_BYTES))}</p>}
          <CopyButton value={shown} label={text.copyWhat(text.mail.source)} />
          <pre class="wrap">{visibleText(shown)}</pre>
        </>
      )}
    </Show>
  )
}
