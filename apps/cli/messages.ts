import { Option, type Command } from 'commander'
import { attachmentName } from '#libs/mail/attachment-name.js'
import type { Session } from './api-client.js'
import { inboxPath, passwordOption, withFilters, wholeNumber, type Filters } from './arguments.js'
import { Failure } from './failure.js'
import { harmless, oneLine, table } from './printing.js'

type WaitOptions = Filters & {
  timeout: number
  order: string
  cursor?: string
  code?: boolean
  link?: boolean
  extract?: string
  password?: string
}

/** The maximum wait of one request that the API allows. */
const MAX_REQUEST_SECONDS = 55
/** Time that a request may take in addition to its wait. */
const GRACE_MS = 15_000

/** `mayfly inbox wait` */
export function waitCommand(inbox: Command, session: Session): void {
  withFilters(inbox.command('wait'))
    .description('wait for a message that matches: the oldest one present, or the next to arrive')
    .argument('<inbox>', 'inbox id')
    .option('--timeout <seconds>', 'how long to wait, at most 3600', wholeNumber(0, 3_600, 'seconds'), 25)
    .addOption(
      new Option('--order <order>', 'take the oldest match (asc) or the newest (desc)')
        .choices(['asc', 'desc'])
        .default('asc'),
    )
    .option('--cursor <cursor>', 'only messages after this position, a Mayfly-Cursor')
    .addOption(new Option('--code', 'wait for a one-time code, and print nothing else').conflicts('link'))
    .option('--link', 'wait for a link, and print nothing else')
    .addOption(
      new Option(
        '--extract <expression>',
        'wait for a match of this RE2 expression, and print nothing else: its first group that took part, or else the whole match',
      ).conflicts(['code', 'link']),
    )
    .addOption(passwordOption())
    .action(async (inboxId: string, options: WaitOptions) => {
      const message = await waitFor(session, `${inboxPath(inboxId)}/messages/wait`, options)
      const [code] = message.codes
      const [link] = message.links
      const [match] = message.extracted ?? []
      if (options.code === true && code !== undefined) session.write(`${code.value}\n`)
      else if (options.link === true && link !== undefined) session.write(`${link.href}\n`)
      else if (match !== undefined)
        session.write(`${match.groups.find((group) => group !== null) ?? match.text}\n`)
      else await session.print(message, messageText)
    })
}

/** Repeats the wait from the same cursor until the timeout, so that the final problem covers all messages. */
async function waitFor(session: Session, path: string, options: WaitOptions): Promise<MessageJson> {
  const { timeout, code, link, password, ...query } = options
  const wanted = {
    ...(code === true ? { has_code: 'true' } : {}),
    ...(link === true ? { has_link: 'true' } : {}),
  }
  const deadline = performance.now() + timeout * 1_000
  for (;;) {
    const left = Math.max(Math.ceil((deadline - performance.now()) / 1_000), 0)
    const seconds = Math.min(left, MAX_REQUEST_SECONDS)
    try {
      return await session.api().call<MessageJson>('GET', path, {
        query: { ...query, ...wanted, timeout: String(seconds) },
        password,
        timeoutMs: seconds * 1_000 + GRACE_MS,
      })
    } catch (error) {
      const isTimeout = error instanceof Failure && error.problem?.code === 'no-matching-message'
      if (!isTimeout || left <= seconds) throw error
    }
  }
}

export interface MessageJson {
  id: string
  received_at: string
  subject: string | null
  sender: string
  from: MailboxJson[]
  to: MailboxJson[]
  text: string | null
  visible_text: string | null
  links: { href: string; text: string | null }[]
  codes: { value: string }[]
  extracted?: { text: string; groups: (string | null)[] }[]
  attachments: { index: number; filename: string | null; content_type: string; size: number }[]
  size: number
}

interface MailboxJson {
  name: string | null
  address: string
}

export function messageTable(messages: readonly MessageJson[]): string {
  return table(
    ['id', 'received', 'sender', 'code', 'subject'],
    messages.map(({ id, received_at: received, sender, codes, subject }) => [
      id,
      received,
      sender,
      codes[0]?.value ?? '-',
      subject ?? '-',
    ]),
  )
}

/** A message as text for people. */
export function messageText(message: MessageJson): string {
  const { links, codes, attachments } = message
  const head = [
    `Id: ${message.id}`,
    `Received: ${message.received_at}`,
    `From: ${mailboxes(message.from) || message.sender}`,
    `To: ${mailboxes(message.to)}`,
    `Subject: ${message.subject ?? ''}`,
    ...codes.map(({ value }) => `Code: ${value}`),
    ...links.map(({ href }) => `Link: ${href}`),
    ...attachments.map(
      ({ index, filename, content_type: type, size }) =>
        `Attachment: ${index} ${attachmentName(filename, type)} (${type}, ${size} bytes)`,
    ),
  ]
  return `${head.map(oneLine).join('\n')}\n\n${harmless(message.text ?? message.visible_text ?? '(no text)')}`
}

function mailboxes(boxes: readonly MailboxJson[]): string {
  return boxes
    .map(({ name, address }) => (name === null || name === '' ? address : `${name} <${address}>`))
    .join(', ')
}
