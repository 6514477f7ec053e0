import { harmless, oneLine, table } from './printing.js'

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
        `Attachment: ${index} ${filename ?? ''} (${type}, ${size} bytes)`,
    ),
  ]
  return `${head.map(oneLine).join('\n')}\n\n${harmless(message.text ?? message.visible_text ?? '(no text)')}`
}

function mailboxes(boxes: readonly MailboxJson[]): string {
  return boxes
    .map(({ name, address }) => (name === null || name === '' ? address : `${name} <${address}>`))
    .join(', ')
}
