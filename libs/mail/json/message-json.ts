import type { InboxId, MessageId } from '#libs/domain/ids/typeid.js'
import type { BodyKind } from '#libs/domain/inbox/events.js'
import type { EventNotification, WebhookEventType } from '#libs/domain/webhook/events.js'
import type { ParsedMail } from '../message.js'

/*
 * Messages and events as JSON: the message of the API, and the bodies that streams and webhooks send.
 */

/** A message from the views, decrypted. */
export interface OpenedMessage {
  id: MessageId
  inboxId: InboxId
  receivedAt: Date
  mail: ParsedMail
  /** Bytes of the mail as JSON. */
  bytes: number
}

/** A message as the API returns it, without its source. `basePath` is the path that `raw_url` begins with. */
export function messageJson({ id, inboxId, receivedAt, mail }: OpenedMessage, basePath: string) {
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
    raw_url: `${basePath}/${inboxId}/messages/${id}/raw`,
    warnings: mail.warnings,
    ...(envelope.injected && { injected: true }),
    ...(envelope.duplicateOf !== undefined && { duplicate_of: envelope.duplicateOf }),
  }
}

export type MessageJson = ReturnType<typeof messageJson>

const MAX_BODY_BYTES = 256_000
/** The properties that are removed from a message, in this order, while its body is too long. */
export const TRUNCATED_PROPERTIES = ['html', 'visible_text', 'text', 'headers'] as const

/** The body of `message.received`. Removed properties are null, and listed in `truncated`. */
export function messageBody(time: Date, message: OpenedMessage, basePath: string): string {
  let data: Record<string, unknown> = messageJson(message, basePath)
  let body = bodyText('message.received', time, data)
  const truncated: string[] = []
  for (const name of TRUNCATED_PROPERTIES) {
    if (Buffer.byteLength(body) <= MAX_BODY_BYTES) break
    if (data[name] === null) continue
    truncated.push(name)
    data = { ...data, [name]: null, truncated }
    body = bodyText('message.received', time, data)
  }
  return body
}

/** The body of an event without mail. */
export function bodyWithoutMail(
  kind: Exclude<BodyKind, 'message'>,
  { type, inboxId, messageId, occurredAt: time }: EventNotification,
): string {
  switch (kind) {
    case 'deleted-message':
      return bodyText(type, time, { id: messageId, inbox_id: inboxId, deleted_at: time.toISOString() })
    case 'ended-inbox': {
      const [, state] = type.split('.')
      return bodyText(type, time, { id: inboxId, state, ended_at: time.toISOString() })
    }
  }
}

/** An event as JSON: its name, its time and its data. */
function bodyText(type: WebhookEventType, time: Date, data: object): string {
  return JSON.stringify({ type, timestamp: time.toISOString(), data })
}
