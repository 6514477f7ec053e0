import { hash } from 'node:crypto'
import { readMailboxes } from './addresses.js'
import { bodyText, decodedBody } from './body-text.js'
import { fieldText, showField, type Field } from './part-header.js'
import { type MailLimits, defaultMailLimits } from '../limits.js'
import type { Attachment, Mailbox, ParsedMail, Warning } from '../message.js'
import { prepareSource } from './source.js'
import { type Part, readWellFormed, type Parts } from './well-formed.js'

type MimeFields = 'headers' | 'from' | 'to' | 'cc' | 'replyTo' | 'attachments' | 'warnings'

export interface MimeContent extends Pick<ParsedMail, MimeFields> {
  /** What is shown, in order, of type text/plain. */
  texts: string[]
  /** What is shown, in order, of type text/html. */
  htmls: string[]
}

/** Resolves once the whole source is read. Rejects with an Error if the parser is defeated. */
export async function readMime(raw: Buffer, limits: MailLimits): Promise<MimeContent> {
  const { maxMailboxes, maxAttachments } = limits
  const warnings: Warning[] = []
  const { header, shown, attached } = await readParts(raw, limits, warnings)
  const attachments = attached
    .slice(0, maxAttachments)
    .map((part, index) => openAttachment(part, index, warnings).meta)
  if (attached.length > maxAttachments) {
    const detail = `${attached.length - maxAttachments} more attachments were left out.`
    warnings.push({ code: 'too-many-attachments', detail })
  }
  const texts: string[] = []
  const htmls: string[] = []
  for (const part of shown) {
    const text = bodyText(part, warnings)
    if (text !== '') (part.header.shownAs === 'text/html' ? htmls : texts).push(text)
  }
  const fields = header?.fields ?? []
  const charset = header?.charset ?? null
  const mailboxesOf = (found: Field[]) => {
    const read: Mailbox[] = []
    for (const { value } of found) {
      read.push(...readMailboxes(fieldText(value, charset), maxMailboxes + 1 - read.length))
      if (read.length <= maxMailboxes) continue
      const detail = `Only the first ${maxMailboxes} addresses of an address field are listed.`
      warnings.push({ code: 'too-many-addresses', detail })
      break
    }
    return read.slice(0, maxMailboxes)
  }
  const all = (key: string) => fields.filter((field) => field.key === key)
  // A mail may have one of each (RFC 5322, section 3.6). Of several From or Reply-To the first counts.
  return {
    headers: fields.map((field) => showField(field, charset)),
    from: mailboxesOf(all('from').slice(0, 1)),
    to: mailboxesOf(all('to')),
    cc: mailboxesOf(all('cc')),
    replyTo: mailboxesOf(all('reply-to').slice(0, 1)),
    texts,
    htmls,
    attachments,
    warnings: distinct(warnings),
  }
}

/** Adds to the warnings. mailparser is loaded by the first mail that needs it. */
async function readParts(raw: Buffer, limits: MailLimits, warnings: Warning[]): Promise<Parts> {
  const source = prepareSource(raw, limits, warnings)
  const parts = readWellFormed(source, limits)
  if (parts !== null) return parts
  const { readTree } = await import('./read-tree.js')
  return readTree(source, limits, warnings)
}

/** An attachment as it is listed, and its decoded content; adds to the warnings. */
function openAttachment(
  part: Part,
  index: number,
  warnings: Warning[],
): { meta: Attachment; content: Buffer } {
  const { filename, type: contentType, contentId, isInline } = part.header
  const content = decodedBody(part, warnings)
  const [size, sha256] = [content.length, hash('sha256', content)]
  return { meta: { index, filename, contentType, size, contentId, isInline, sha256 }, content }
}

function distinct(warnings: Warning[]): Warning[] {
  const seen = new Map(warnings.map((warning) => [warning.code + warning.detail, warning]))
  return [...seen.values()]
}

/**
 * One attachment's decoded bytes, by the index that `parseMail` gave it under the same limits; null if there is
 * none. What else the mail says is not decoded. Rejects as `parseMail` does.
 */
export async function readAttachment(
  raw: Buffer,
  index: number,
  limits: MailLimits = defaultMailLimits,
): Promise<{ meta: Attachment; content: Buffer } | null> {
  const { attached } = await readParts(raw, limits, [])
  const part = attached.slice(0, limits.maxAttachments)[index]
  return part === undefined ? null : openAttachment(part, index, [])
}
