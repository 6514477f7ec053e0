import { hash } from 'node:crypto'
import { readMailboxes } from './addresses.js'
import { decodedPieces, describeAttachment, listAttachment } from './attachments.js'
import { bodyText, encodingWarning } from './body-text.js'
import { fieldText, showField, type Field } from './part-header.js'
import { type MailLimits, defaultMailLimits } from '../limits.js'
import type { Attachment, Header, Mailbox, Warning } from '../message.js'
import type { readTree } from './read-tree.js'
import { prepareSource } from './source.js'
import { type Part, readWellFormed, type ShownParts } from './well-formed.js'

export interface MimeContent {
  headers: Header[]
  from: Mailbox[]
  to: Mailbox[]
  cc: Mailbox[]
  replyTo: Mailbox[]
  /** What is shown, in order, of type text/plain. */
  texts: string[]
  /** What is shown, in order, of type text/html. */
  htmls: string[]
  attachments: Attachment[]
  warnings: Warning[]
}

/** Resolves once the whole source is read. Rejects with an Error if the parser is defeated. */
export async function readMime(raw: Buffer, limits: MailLimits): Promise<MimeContent> {
  const warnings: Warning[] = []
  const source = prepareSource(raw, limits, warnings)
  const read = readWellFormed(source, limits)
  if (read === null) return contentOf(await readByMailparser(source, limits, warnings), limits, warnings)
  const attachments = read.attached.map((part, index) => listAttachment(part, index, warnings))
  return contentOf({ ...read, attachments }, limits, warnings)
}

/** mailparser is loaded by the first mail that needs it. */
async function readByMailparser(...given: Parameters<typeof readTree>): ReturnType<typeof readTree> {
  const { readTree } = await import('./read-tree.js')
  return readTree(...given)
}

function contentOf(
  { header, shown, attachments }: ShownParts & { attachments: Attachment[] },
  { maxMailboxes }: MailLimits,
  warnings: Warning[],
): MimeContent {
  const texts: string[] = []
  const htmls: string[] = []
  for (const part of shown) {
    const text = shownText(part, warnings)
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

function shownText({ header, body }: Part, warnings: Warning[]): string {
  const warning = encodingWarning(header)
  if (warning !== null) warnings.push(warning)
  return bodyText(header, body, warnings)
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
  const warnings: Warning[] = []
  const source = prepareSource(raw, limits, warnings)
  const read = readWellFormed(source, limits)
  if (read !== null) {
    const part = read.attached[index]
    if (part === undefined) return null
    const content = Buffer.concat([...decodedPieces(part)])
    const counted = { index, size: content.length, sha256: hash('sha256', content) }
    return { meta: describeAttachment(part.header, counted, warnings), content }
  }
  const pieces: Buffer[] = []
  const { attachments } = await readByMailparser(source, limits, warnings, (at, piece) => {
    if (at === index) pieces.push(piece)
  })
  const meta = attachments[index]
  return meta === undefined ? null : { meta, content: Buffer.concat(pieces) }
}
