import { setTimeout as pause } from 'node:timers/promises'
import { Option, type Command } from 'commander'
import { ApiError } from '#clients/typescript/src/errors.js'
import type { Schemas } from '#clients/typescript/src/options.js'
import { attachmentName } from '#libs/mail/attachment-name.js'
import { passwordOption, withFilters, wholeNumber, type Filters } from './arguments.js'
import { noInboxAt } from './failure.js'
import { harmless, oneLine, table } from './printing.js'
import type { Session } from './session.js'

type Message = Schemas['Message']

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
/** How often an address without an inbox is looked up. */
const ASK_AGAIN_MS = 500

/** `mayfly inbox wait` */
export function waitCommand(inbox: Command, session: Session): void {
  withFilters(inbox.command('wait'))
    .description('wait for a message that matches: the oldest one present, or the next to arrive')
    .argument('<inbox>', 'inbox id, or an address, which may have no inbox yet')
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
    .action(async (inbox: string, options: WaitOptions) => {
      const deadline = performance.now() + options.timeout * 1_000
      const path = await waitForInbox(session, inbox, deadline)
      const timeout = Math.max((deadline - performance.now()) / 1_000, 0)
      const message = await waitFor(session, `${path}/messages/wait`, { ...options, timeout })
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

/** Resolves with the path of an inbox, if need be once mail to its address has made it. Throws Failure at the deadline. */
async function waitForInbox(session: Session, inbox: string, deadline: number): Promise<string> {
  for (;;) {
    const path = await session.findInboxPath(inbox)
    if (path !== null) return path
    if (performance.now() >= deadline) throw noInboxAt(inbox)
    await pause(ASK_AGAIN_MS)
  }
}

/** Repeats the wait from the same cursor until the timeout, so that the final problem covers all messages. */
async function waitFor(session: Session, path: string, options: WaitOptions): Promise<Message> {
  const { timeout: totalSeconds, code: hasCode, link: hasLink, ...query } = options
  const api = session.api()
  const deadline = performance.now() + totalSeconds * 1_000
  for (;;) {
    const left = Math.max(Math.ceil((deadline - performance.now()) / 1_000), 0)
    const timeout = Math.min(left, MAX_REQUEST_SECONDS)
    const timeoutMs = timeout * 1_000 + GRACE_MS
    try {
      return await api.get<Message>(path, { ...query, hasCode, hasLink, timeout, timeoutMs })
    } catch (error) {
      const isTimeout = error instanceof ApiError && error.code === 'no-matching-message'
      if (!isTimeout || left <= timeout) throw error
    }
  }
}

export function messageTable(messages: readonly Message[]): string {
  return table(
    ['id', 'received', 'sender', 'code', 'subject'],
    messages.map(({ id, received_at: received, sender, codes: [code], subject }) => [
      ...[id, received, sender, code?.value, subject],
    ]),
  )
}

/** A message as text for people. */
export function messageText(message: Message): string {
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

function mailboxes(boxes: Message['from']): string {
  return boxes
    .map(({ name, address }) => (name === null || name === '' ? address : `${name} <${address}>`))
    .join(', ')
}
