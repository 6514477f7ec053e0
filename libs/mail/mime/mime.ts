import { hash } from 'node:crypto'
import { readMailboxes } from './addresses.js'
import { fieldText, showField, type Field } from './part-header.js'
import {
  type Attachment,
  type Mailbox,
  type ParsedMail,
  type Warning,
  type MailLimits,
  defaultMailLimits,
} from '../message.js'
import { prepareSource, type Part, readWellFormed, type Parts } from './source.js'
import { decodeBase64, decodeQuotedPrintable, replaceEach } from './transfer-encodings.js'
import { decodeText } from './charset.js'

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

const identities = new Set(['', '7bit', '8bit', 'binary', '7-bit', '8-bit', '7 bit', '8 bit'])
/** HTML may name its charset in a meta element; the Encoding Standard's look-out for it is 1,024 bytes, mail has longer heads. */
const metaBytes = 4_096
const metaCharset = /<meta\b[^>]{0,500}?\bcharset\s{0,10}=\s{0,10}["']?\s{0,10}([^\s"'/>;]{1,40})/i

/** The text of a part that is shown, with line breaks as LF; adds to the warnings. */
export function bodyText(part: Part, warnings: Warning[]): string {
  const { header } = part
  const bytes = decodedBody(part, warnings)
  const charset = header.charset || (header.shownAs === 'text/html' ? declaredInHtml(bytes) : null)
  const { text, guessed } = decodeText(bytes, charset)
  if (guessed !== null) {
    const declared = charset ? `declared as "${charset.slice(0, 40).toWellFormed()}"` : 'without a charset'
    warnings.push({ code: 'charset-guessed', detail: `A text ${declared} was read as ${guessed}.` })
  }
  const lines = replaceEach(text, '\r\n', '\n')
  return header.isFlowed && header.type === 'text/plain' ? unflow(lines, header.deletesSpace) : lines
}

/**
 * The body of a part with its transfer encoding undone; adds to the warnings. If the encoding is not known, the body
 * stays as it is: RFC 2045, section 6.4, would have such text kept from the reader altogether.
 */
export function decodedBody({ header: { encoding, type }, body }: Part, warnings: Warning[]): Buffer {
  if (encoding === 'quoted-printable') return decodeQuotedPrintable(body)
  if (encoding === 'base64') return decodeBase64(body)
  if (!identities.has(encoding) && !type.startsWith('multipart/')) {
    const named = encoding.slice(0, 40).toWellFormed()
    const detail = `The transfer encoding "${named}" is not known; a part is given undecoded.`
    warnings.push({ code: 'unknown-encoding', detail })
  }
  return body
}

function declaredInHtml(bytes: Buffer): string | null {
  const [, label = ''] = metaCharset.exec(bytes.toString('latin1', 0, metaBytes)) ?? []
  // What was found one byte a character can't be UTF-16.
  return label === '' ? null : label.replace(/^utf-?(?:16|32).*$/i, 'utf-8')
}

const signature = '-- '

/**
 * Text in format=flowed with its soft line breaks taken out (RFC 3676, section 4): paragraphs become lines,
 * space-stuffing goes, quotes keep their depth, the signature's separator stays a line. The last line break is dropped.
 */
function unflow(text: string, deletesSpace: boolean): string {
  const lines = text.split('\n')
  if (lines.at(-1) === '') lines.pop()
  const paragraphs: string[] = []
  let pieces: string[] = []
  let depth = 0
  let isOpen = false
  const end = () => {
    if (pieces.length > 0) paragraphs.push(quote(pieces.join(''), depth))
    pieces = []
  }
  for (const line of lines) {
    const lineDepth = quoteDepth(line)
    let content = line.slice(lineDepth)
    if (content.startsWith(' ')) content = content.slice(1)
    const isSignature = content === signature
    if (!isOpen || lineDepth !== depth || isSignature) {
      end()
      depth = lineDepth
    } else if (deletesSpace) {
      const last = pieces.pop() ?? ''
      pieces.push(last.slice(0, -1))
    }
    pieces.push(content)
    isOpen = content.endsWith(' ') && !isSignature
  }
  end()
  return paragraphs.join('\n')
}

function quoteDepth(line: string): number {
  let depth = 0
  while (line[depth] === '>') depth++
  return depth
}

function quote(text: string, depth: number): string {
  if (depth === 0) return text
  return '>'.repeat(depth) + (text === '' ? '' : ` ${text}`)
}
