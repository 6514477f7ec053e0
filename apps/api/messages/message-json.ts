import { isUtf8 } from 'node:buffer'
import { StringDecoder } from 'node:string_decoder'
import type { Static } from 'typebox'
import type { ParsedMail } from '#libs/mail/message.js'
import type { InboxId, MessageId } from '#libs/typeid/typeid.js'
import type { Message } from './message-schemas.js'

/** A message as the views have it, opened. */
export interface OpenedMessage {
  id: MessageId
  inboxId: InboxId
  receivedAt: Date
  mail: ParsedMail
  /** Of the mail as JSON. */
  bytes: number
}

/** A message as the contract has it, without its source. `family` is the path that links begin with. */
export function messageJson(
  { id, inboxId, receivedAt, mail }: OpenedMessage,
  family: string,
): Static<typeof Message> {
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

/** Bytes of a source written at once, of base64's groups of three; in between other requests have their turn. */
const PIECE = 3 * 128 * 1024

/**
 * A message with its source, as JSON in UTF-8: the source as a string, as it is where it is UTF-8, in base64 where not.
 * Written piece by piece, since a source of many megabytes takes long.
 */
export async function messageWithRaw(message: Static<typeof Message>, raw: Buffer): Promise<Buffer> {
  const encoding = isUtf8(raw) ? 'utf-8' : 'base64'
  const decoder = new StringDecoder(encoding)
  const pieces: Buffer[] = [Buffer.from(`${JSON.stringify(message).slice(0, -1)},"raw":"`)]
  for (let at = 0; at < raw.length; at += PIECE) {
    if (at > 0) await new Promise(setImmediate)
    pieces.push(inString(decoder.write(raw.subarray(at, at + PIECE))))
  }
  pieces.push(inString(decoder.end()), Buffer.from(`","raw_encoding":"${encoding}"}`))
  return Buffer.concat(pieces)
}

/** What stands between the quotation marks of a JSON string. */
function inString(text: string): Buffer {
  return Buffer.from(JSON.stringify(text).slice(1, -1))
}
