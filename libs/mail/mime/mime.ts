import { hash } from 'node:crypto'
import { DEFAULT_MAIL_LIMITS, type MailLimits } from '../limits.js'
import type { Attachment, Mailbox, ParsedMail, Warning } from '../message.js'
import { readMailboxes } from './addresses.js'
import { charsetName } from './charset-names.js'
import { decodeText } from './charset.js'
import { fieldText, fileName, needsCharset, showField, type Field } from './part-header.js'
import { readParts, type Part, type Parts } from './parts.js'
import { decodeBase64, decodeQuotedPrintable, replaceEach } from './transfer-encodings.js'

/*
 * Reads the MIME structure of a mail: its header fields, its texts and its attachments.
 */

type MimeFields = 'headers' | 'from' | 'to' | 'cc' | 'replyTo' | 'attachments' | 'warnings'

/** The bytes of a text in a source, from one offset up to, not including, another. */
export interface TextSpan {
  from: number
  to: number
  /** The transfer encoding; null if it changes nothing, or is unknown. */
  encoding: 'quoted-printable' | 'base64' | null
}

/** A text of a mail, and where it is in the source if it is in UTF-8. */
export interface ShownText {
  text: string
  span: TextSpan
}

export interface MimeContent extends Pick<ParsedMail, MimeFields> {
  /** The texts that are shown as text/plain, in order. */
  texts: ShownText[]
  /** The texts that are shown as text/html, in order. */
  htmls: ShownText[]
}

/** Reads everything except links and codes. */
export function readMime(raw: Buffer, limits: MailLimits): MimeContent {
  const { maxMailboxes, maxAttachments } = limits
  const warnings: Warning[] = []
  const parts = readParts(raw, limits, warnings)
  const { header, shown, attached } = parts
  const charset = charsetOfHeaders(parts)
  const attachments = attached
    .slice(0, maxAttachments)
    .map((part, index) => openAttachment(part, index, { charset, warnings }).meta)
  if (attached.length > maxAttachments) {
    const detail = `${attached.length - maxAttachments} more attachments were left out.`
    warnings.push({ code: 'too-many-attachments', detail })
  }
  const texts: ShownText[] = []
  const htmls: ShownText[] = []
  for (const part of shown) {
    const text = bodyText(part, warnings)
    if (text === '') continue
    const from = part.body.byteOffset - raw.byteOffset
    const span = { from, to: from + part.body.length, encoding: decodable(part.header.encoding) }
    ;(part.header.shownAs === 'text/html' ? htmls : texts).push({ text, span })
  }
  const { fields } = header
  const mailboxesOf = (addressFields: Field[]) => {
    const mailboxes: Mailbox[] = []
    for (const { value } of addressFields) {
      mailboxes.push(...readMailboxes(fieldText(value, charset), maxMailboxes + 1 - mailboxes.length))
      if (mailboxes.length <= maxMailboxes) continue
      const detail = `Only the first ${maxMailboxes} addresses of an address field are listed.`
      warnings.push({ code: 'too-many-addresses', detail })
      break
    }
    return mailboxes.slice(0, maxMailboxes)
  }
  const fieldsNamed = (key: string) => fields.filter((field) => field.key === key)
  // A mail may have one field of each name (RFC 5322, section 3.6). If From or Reply-To is repeated, the first one is
  // used.
  return {
    headers: fields.map((field) => showField(field, charset)),
    from: mailboxesOf(fieldsNamed('from').slice(0, 1)),
    to: mailboxesOf(fieldsNamed('to')),
    cc: mailboxesOf(fieldsNamed('cc')),
    replyTo: mailboxesOf(fieldsNamed('reply-to').slice(0, 1)),
    texts,
    htmls,
    attachments,
    warnings: distinct(warnings),
  }
}

/**
 * The charset of bytes in headers that are not UTF-8: that of the first text that has another charset than Unicode and
 * ASCII. Null if there is none, or no header has such bytes.
 */
function charsetOfHeaders({ header, shown, attached }: Parts): string | null {
  if (![header, ...attached.map((part) => part.header)].some(needsCharset)) return null
  for (const part of shown) {
    const name = charsetName(declaredCharset(part, () => decodedBody(part, [])) ?? '')
    if (name !== null && !/^(?:utf|us-ascii|iso-2022|hz)/.test(name)) return name
  }
  return null
}

/** An attachment as it is listed, with its decoded content; adds to the warnings. */
function openAttachment(
  part: Part,
  index: number,
  { charset, warnings }: { charset: string | null; warnings: Warning[] },
): { meta: Attachment; content: Buffer } {
  const { type: contentType, contentId, isInline } = part.header
  const filename = charset === null ? part.header.filename : fileName(part.header, charset)
  const content = decodedBody(part, warnings)
  const [size, sha256] = [content.length, hash('sha256', content)]
  return { meta: { index, filename, contentType, size, contentId, isInline, sha256 }, content }
}

function distinct(warnings: Warning[]): Warning[] {
  const seen = new Map(warnings.map((warning) => [warning.code + warning.detail, warning]))
  return [...seen.values()]
}

/**
 * One attachment with its decoded content, or null if it does not exist. `index` is its index in the result of
 * `parseMail` with the same limits. Decodes nothing else of the mail.
 */
export function readAttachment(
  raw: Buffer,
  index: number,
  limits: MailLimits = DEFAULT_MAIL_LIMITS,
): { meta: Attachment; content: Buffer } | null {
  const parts = readParts(raw, limits, [])
  const part = parts.attached.slice(0, limits.maxAttachments)[index]
  return part === undefined
    ? null
    : openAttachment(part, index, { charset: charsetOfHeaders(parts), warnings: [] })
}

/** A part that the HTML of its mail can show. */
export interface EmbeddedPart {
  /** The URLs that name it: its Content-Location, and `cid:` with its Content-ID (RFC 2392), which is not encoded here. */
  urls: string[]
  decode: () => Buffer
}

/** The parts that the HTML of a mail can show, and what relative URLs in it refer to. */
export function readEmbeddedParts(raw: Buffer): { parts: EmbeddedPart[]; baseUrl: string | undefined } {
  const { shown, attached } = readParts(raw, DEFAULT_MAIL_LIMITS, [])
  const html = shown.find(({ header }) => header.shownAs === 'text/html')?.header
  const parts = [...attached, ...shown].map((part) => {
    const { contentId, contentLocation } = part.header
    const urls = [contentId === null ? null : `cid:${contentId}`, contentLocation]
    return { urls: urls.filter((url) => url !== null), decode: () => decodedBody(part, []) }
  })
  return { parts, baseUrl: html?.contentLocation ?? html?.baseUrl }
}

const KNOWN_ENCODING = /^(?:quoted-printable|base64|[78][- ]?bit|binary|)$/
/** Bytes of HTML in which a meta element may name the charset. Browsers search 1,024, but mails have longer heads. */
const META_BYTES = 4_096
const META_CHARSET = /<meta\b[^>]{0,500}?\bcharset\s{0,10}=\s{0,10}["']?\s{0,10}([^\s"'/>;]{1,40})/i

/** The text in UTF-8 that a source has at a span, with LF as line breaks. If it changes, so must the form of the views. */
export function textAt(raw: Buffer, { from, to, encoding }: TextSpan): string {
  return replaceEach(decoded(raw.subarray(from, to), encoding).toString(), '\r\n', '\n')
}

/** The text of a part that is shown, with LF as line breaks; adds to the warnings. */
function bodyText(part: Part, warnings: Warning[]): string {
  const { header } = part
  const bytes = decodedBody(part, warnings)
  const charset = declaredCharset(part, () => bytes)
  const { text, guessed } = decodeText(bytes, charset)
  if (guessed !== null) {
    const declared = charset ? `declared as "${charset.slice(0, 40).toWellFormed()}"` : 'without a charset'
    warnings.push({ code: 'charset-guessed', detail: `A text ${declared} was read as ${guessed}.` })
  }
  const lines = replaceEach(text, '\r\n', '\n')
  return header.isFlowed && header.type === 'text/plain' ? unflow(lines, header.deletesSpace) : lines
}

/**
 * Decodes the transfer encoding of a body; adds to the warnings. If the encoding is unknown, the body is returned
 * without decoding. (RFC 2045, section 6.4, would hide such text from the reader.)
 */
function decodedBody({ header: { encoding, type }, body }: Part, warnings: Warning[]): Buffer {
  if (!KNOWN_ENCODING.test(encoding) && !type.startsWith('multipart/')) {
    const name = encoding.slice(0, 40).toWellFormed()
    const detail = `The transfer encoding "${name}" is unknown; a part is returned without decoding.`
    warnings.push({ code: 'unknown-encoding', detail })
  }
  return decoded(body, decodable(encoding))
}

function decodable(encoding: string): TextSpan['encoding'] {
  return encoding === 'quoted-printable' || encoding === 'base64' ? encoding : null
}

function decoded(body: Buffer, encoding: TextSpan['encoding']): Buffer {
  if (encoding === 'quoted-printable') return decodeQuotedPrintable(body)
  return encoding === 'base64' ? decodeBase64(body) : body
}

function declaredCharset({ header }: Part, decode: () => Buffer): string | null {
  return header.charset || (header.shownAs === 'text/html' ? declaredInHtml(decode()) : null)
}

function declaredInHtml(bytes: Buffer): string | null {
  const [, label = ''] = META_CHARSET.exec(bytes.toString('latin1', 0, META_BYTES)) ?? []
  // The declaration was read with one byte per character, so the charset can't be UTF-16.
  return label === '' ? null : label.replace(/^utf-?(?:16|32).*$/i, 'utf-8')
}

const SIGNATURE = '-- '

/**
 * Decodes format=flowed (RFC 3676, section 4): joins soft line breaks, so that paragraphs become lines; removes
 * space-stuffing and the last line break; keeps quote depths, and the signature separator as a line.
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
    const isSignature = content === SIGNATURE
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
