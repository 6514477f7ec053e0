import { hash } from 'node:crypto'
import { findCodes } from './codes/codes.js'
import { MAX_HREF_LENGTH } from './links/html-links.js'
import { findLinks } from './links/links.js'
import { readHtml } from './links/visible-text.js'
import { cutToJsonBytes, DEFAULT_MAIL_LIMITS, type MailLimits } from './limits.js'
import { tagOf } from './mailbox.js'
import type { Envelope, ParsedMail, Warning } from './message.js'
import { readDate } from './mime/date.js'
import { readMime, textAt, type ShownText, type TextSpan } from './mime/mime.js'
import { firstValue } from './mime/part-header.js'
import { scanHeader } from './mime/parts.js'
import { needsSource, type TextSpans } from './stored-mail.js'

/**
 * Parses a mail. Returns everything that could be read, with a warning for each thing that could not. Does not limit
 * time or memory.
 */
export function parseMail(
  raw: Buffer,
  envelope: Envelope,
  limits: MailLimits = DEFAULT_MAIL_LIMITS,
): ParsedMail {
  return parseWithSpans(raw, envelope, limits).mail
}

/** A parsed mail, and where its source has its texts. */
export interface MailWithSpans {
  mail: ParsedMail
  spans: TextSpans
}

/** As `parseMail`, with the spans of its texts, to store it. */
export function parseWithSpans(
  raw: Buffer,
  envelope: Envelope,
  limits: MailLimits = DEFAULT_MAIL_LIMITS,
): MailWithSpans {
  const { texts, htmls, ...mime } = readMime(raw, limits)
  const warnings = [...mime.warnings]
  const subject = firstValue(mime.headers, 'subject')
  const text = joinParts(texts, limits.maxTextBytes, 'text-truncated', warnings)
  const html = joinParts(htmls, limits.maxHtmlBytes, 'html-truncated', warnings)
  const content = html === null ? null : readHtml(html)
  const links = findLinks(content, text, limits.maxLinks)
  if (links.isCut) {
    const detail = `Only the first ${limits.maxLinks} links are listed, none longer than ${MAX_HREF_LENGTH} characters.`
    warnings.push({ code: 'too-many-links', detail })
  }
  const mail = {
    ...mime,
    subject,
    ...propertiesOfCopy(mime, envelope),
    date: dateOf(firstValue(mime.headers, 'date'), warnings),
    text,
    html,
    htmlText: content?.text ?? null,
    links: links.found,
    codes: findCodes(subject, text, content?.text ?? null, limits.maxCodes),
    size: raw.length,
    sha256: hash('sha256', raw),
    warnings,
  }
  return { mail, spans: { ...spanOf('text', raw, texts, text), ...spanOf('html', raw, htmls, html) } }
}

/** The span of a text in a small source, if it is the only text of its type and the source has the whole of it there. */
function spanOf(
  name: keyof TextSpans,
  raw: Buffer,
  [first, ...others]: readonly ShownText[],
  text: string | null,
): TextSpans {
  if (first === undefined || others.length > 0 || !needsSource(raw.length)) return {}
  // Each piece of base64 takes time, and readers of the mail would spend it again.
  if (first.span.encoding === 'base64' && hasPieces(raw, first.span)) return {}
  return textAt(raw, first.span) === text ? { [name]: first.span } : {}
}

const EQUALS = 61
/** Padding, and line breaks after it. */
const MAX_END_BYTES = 16

/** Whether base64 may go on after padding. */
function hasPieces(raw: Buffer, { from, to }: TextSpan): boolean {
  const padding = raw.subarray(from, to).indexOf(EQUALS)
  return padding !== -1 && padding < to - from - MAX_END_BYTES
}

/** What differs between the copies of a mail to several recipients. */
export function propertiesOfCopy(
  { from }: Pick<ParsedMail, 'from'>,
  envelope: Envelope,
): Pick<ParsedMail, 'sender' | 'recipient' | 'recipientDetail' | 'envelope'> {
  const { mailFrom, rcptTo } = envelope
  const sender = from[0]?.address ?? mailFrom
  return { sender, recipient: rcptTo, recipientDetail: tagOf(rcptTo), envelope }
}

/**
 * Joins parts of one type (the text around an image, a mailing list's footer) with line breaks. Charsets such as
 * UTF-16 can encode half a surrogate pair. It is replaced by U+FFFD, because strict JSON parsers reject a document
 * that contains one (RFC 7493, section 2.1).
 */
function joinParts(
  parts: readonly ShownText[],
  maxBytes: number,
  code: 'text-truncated' | 'html-truncated',
  warnings: Warning[],
): string | null {
  if (parts.length === 0) return null
  const whole = parts
    .map(({ text }) => text)
    .join('\n')
    .toWellFormed()
  const kept = cutToJsonBytes(whole, maxBytes)
  if (kept.length < whole.length)
    warnings.push({ code, detail: `Only the first ${maxBytes} bytes, counted as JSON, are kept.` })
  return kept
}

function dateOf(value: string | null, warnings: Warning[]): string | null {
  if (value === null) return null
  const date = readDate(value)
  if (date === null) warnings.push({ code: 'invalid-date', detail: 'The Date header is not a valid time.' })
  return date
}

/** How much of its header is read if a mail could not be parsed as a whole. */
const HEADER_BYTES = 16 * 1024

/**
 * Reads only the beginning of the header, for a mail that can't be parsed: no text, links, codes or attachments.
 * Never fails. Apart from the digest of the source, the time does not depend on its length.
 */
export function parseHeader(raw: Buffer, envelope: Envelope, warning: Warning): ParsedMail {
  const unparsed = parseNothing(raw, envelope, warning)
  try {
    // One more byte shows whether the last line is whole.
    const start = raw.subarray(0, HEADER_BYTES + 1)
    const { end } = scanHeader(start, { ...DEFAULT_MAIL_LIMITS, maxHeaderBytes: HEADER_BYTES })
    const header = parseMail(raw.subarray(0, end), envelope)
    const { subject, sender, from, to, cc, replyTo, date, headers } = header
    return { ...unparsed, subject, sender, from, to, cc, replyTo, date, headers }
  } catch {
    return unparsed
  }
}

/** A mail that can't be parsed: only its envelope, and the size and digest of its source. */
export function parseNothing(raw: Buffer, envelope: Envelope, warning: Warning): ParsedMail {
  const empty = parseMail(Buffer.alloc(0), envelope)
  return { ...empty, size: raw.length, sha256: hash('sha256', raw), warnings: [warning] }
}
