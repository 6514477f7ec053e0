import type { ParsedMail } from '../message.js'
import type { InboxId, MessageId } from '#libs/domain/ids/typeid.js'
import type { InboxEvent } from '#libs/domain/inbox/events.js'

/** A message as the views have it, opened. */
export interface OpenedMessage {
  id: MessageId
  inboxId: InboxId
  receivedAt: Date
  mail: ParsedMail
  /** Of the mail as JSON. */
  bytes: number
}

export type MessageJson = ReturnType<typeof messageJson>

/** A message as the contract has it, without its source. `family` is the path that links begin with. */
export function messageJson({ id, inboxId, receivedAt, mail }: OpenedMessage, family: string) {
  const { envelope } = mail
  return {
    id,
    inbox_id: inboxId,
    received_at: receivedAt.toISOString(),
    subject: mail.subject,
    sender: mail.sender,
    recipient: mail.recipient,
    from: mail.from,
    to: mail.to,
    cc: mail.cc,
    reply_to: mail.replyTo,
    date: mail.date,
    text: mail.text,
    html: mail.html,
    visible_text: mail.htmlText,
    links: mail.links,
    codes: mail.codes,
    attachments: mail.attachments.map((attachment) => ({
      index: attachment.index,
      filename: attachment.filename,
      content_type: attachment.contentType,
      size: attachment.size,
      content_id: attachment.contentId,
      inline: attachment.isInline,
      sha256: attachment.sha256,
    })),
    headers: mail.headers,
    envelope: {
      mail_from: envelope.mailFrom,
      rcpt_to: envelope.rcptTo,
      helo: envelope.helo,
      remote_address: envelope.remoteAddress,
      tls: envelope.tls,
    },
    authentication: envelope.authentication ?? { spf: null, dkim: [], dmarc: null },
    size: mail.size,
    sha256: mail.sha256,
    raw_url: `${family}/${inboxId}/messages/${id}/raw`,
    warnings: mail.warnings,
  }
}

const MAX_BYTES = 256_000
/** The properties that a message loses, in this order, while its body is longer. The message itself keeps them. */
export const TRUNCATED_PROPERTIES = ['html', 'visible_text', 'text', 'headers'] as const

type Name = (typeof EVENT_NAMES)[keyof typeof EVENT_NAMES]

/*
 * What a stream and a webhook say of an event: its name, when it happened and its data, as JSON of one line.
 */

/** Properties that were left out are null and named in `truncated`. */
export function messageBody(time: Date, message: OpenedMessage, family: string): string {
  let data: Record<string, unknown> = messageJson(message, family)
  let body = bodyText(EVENT_NAMES.MessageReceived, time, data)
  const truncated: string[] = []
  for (const name of TRUNCATED_PROPERTIES) {
    if (Buffer.byteLength(body) <= MAX_BYTES) break
    if (data[name] === null) continue
    truncated.push(name)
    data = { ...data, [name]: null, truncated }
    body = bodyText(EVENT_NAMES.MessageReceived, time, data)
  }
  return body
}

export function messageDeletedBody(
  time: Date,
  { inboxId, messageId: id }: { inboxId: InboxId; messageId: MessageId | null },
): string {
  const data = { id, inbox_id: inboxId, deleted_at: time.toISOString() }
  return bodyText(EVENT_NAMES.MessageDeleted, time, data)
}

export function inboxEndBody(type: 'inbox.deleted' | 'inbox.expired', time: Date, id: InboxId): string {
  const state = type === EVENT_NAMES.InboxDeleted ? 'deleted' : 'expired'
  return bodyText(type, time, { id, state, ended_at: time.toISOString() })
}

function bodyText(type: Name, time: Date, data: object): string {
  return JSON.stringify({ type, timestamp: time.toISOString(), data })
}

/** What an inbox's events are called in its history, in its stream and to its webhooks. */
export const EVENT_NAMES = {
  InboxCreated: 'inbox.created',
  MessageReceived: 'message.received',
  MessageDeleted: 'message.deleted',
  InboxExpired: 'inbox.expired',
  InboxDeleted: 'inbox.deleted',
} as const satisfies Record<InboxEvent['type'], string>
