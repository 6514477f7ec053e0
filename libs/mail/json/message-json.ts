import type { ParsedMail } from '../message.js'
import type { InboxId, MessageId } from '#libs/domain/ids/typeid.js'

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
