import { attachmentName } from '#libs/mail/attachment-name.js'
import type { OpenedMessage } from '#libs/mail/json/message-json.js'
import { cutToBytes } from '#libs/mail/limits.js'
import type { Attachment, ParsedMail } from '#libs/mail/message.js'
import { addressesOf, headerOf, messageIdOf } from '../messages/search.js'

/*
 * Messages in the form of Mailpit's API (https://mailpit.axllent.org/docs/api-v1/). Mayfly has no tags, and does not
 * store whether a message was read.
 */

const SNIPPET_BYTES = 200
/** A snippet is made from this much of a text. */
const SNIPPET_FROM = 4_096

/** What a message has in a list and by its id. */
function commonJson(message: OpenedMessage) {
  const { mail } = message
  const { from, to, cc, bcc, replyTo } = addressesOf(mail)
  return {
    // Mailpit's id has no inbox, so both ids are in it.
    ID: `${message.inboxId}.${message.id}`,
    MessageID: messageIdOf(mail),
    ...{ From: from, To: to, Cc: cc, Bcc: bcc, ReplyTo: replyTo },
    Subject: mail.subject ?? '',
    Username: '',
    Tags: [],
    Size: mail.size,
  }
}

/** A message in a list. */
export function summaryJson(message: OpenedMessage) {
  const { mail, receivedAt } = message
  return {
    ...commonJson(message),
    Read: false,
    Created: receivedAt.toISOString(),
    Attachments: mail.attachments.filter(({ isInline }) => !isInline).length,
    Snippet: snippetOf(mail),
  }
}

/** A message with its text. */
export function messageJson(message: OpenedMessage) {
  const { mail, receivedAt } = message
  const common = commonJson(message)
  const unsubscribe = headerOf(mail, 'List-Unsubscribe')
  return {
    ...common,
    ReturnPath: mail.envelope.mailFrom === '' ? common.From.Address : mail.envelope.mailFrom,
    ListUnsubscribe: {
      Header: unsubscribe,
      Links: [...unsubscribe.matchAll(/<([^<>]+)>/g)].map(([, link]) => link),
      Errors: '',
      HeaderPost: headerOf(mail, 'List-Unsubscribe-Post'),
    },
    Date: mail.date ?? receivedAt.toISOString(),
    Text: mail.text ?? mail.htmlText ?? '',
    HTML: mail.html ?? '',
    Inline: mail.attachments.filter(({ isInline }) => isInline).map(attachmentJson),
    Attachments: mail.attachments.filter(({ isInline }) => !isInline).map(attachmentJson),
  }
}

/** Headers by name, in Go's spelling of names: `Message-Id`, `X-Mailer`. */
export function headersJson({ headers }: ParsedMail): Record<string, string[]> {
  const byName = Map.groupBy(headers, ({ name }) =>
    name.toLowerCase().replaceAll(/(^|-)[a-z]/g, (start) => start.toUpperCase()),
  )
  const sorted = [...byName].toSorted(([one], [other]) => (one < other ? -1 : 1))
  return Object.fromEntries(sorted.map(([name, same]) => [name, same.map(({ value }) => value)]))
}

/** The index of the attachment with a PartID, as text; the empty text if there is none. */
export function indexOfPart(partId: string): string {
  return /^[1-9]\d{0,5}$/.test(partId) ? String(Number(partId) - 1) : ''
}

/** PartIDs count from 1, inline attachments included. Clients take them from the message. */
function attachmentJson({ index, filename, contentType, contentId, size, sha256 }: Attachment) {
  return {
    PartID: String(index + 1),
    FileName: attachmentName(filename, contentType),
    ContentType: contentType,
    ContentID: contentId ?? '',
    Size: size,
    Checksums: { MD5: '', SHA1: '', SHA256: sha256 },
  }
}

/** The beginning of the text that a reader sees. */
function snippetOf({ htmlText, text }: ParsedMail): string {
  const start = (htmlText ?? text ?? '').slice(0, SNIPPET_FROM).toWellFormed()
  const line = start.replaceAll(/\s+/g, ' ').trim()
  const cut = cutToBytes(line, SNIPPET_BYTES)
  return cut.length < line.length ? `${cut}...` : line
}
