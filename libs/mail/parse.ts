import { hash } from 'node:crypto'
import { findCodes } from './codes/codes.js'
import { readDate } from './mime/date.js'
import { firstValue } from './mime/part-header.js'
import { maxHrefLength } from './links/html-links.js'
import {
  type Envelope,
  type ParsedMail,
  type Warning,
  cutToJsonBytes,
  defaultMailLimits,
  type MailLimits,
} from './message.js'
import { findLinks } from './links/links.js'
import { readMime } from './mime/mime.js'
import { readHtml } from './links/visible-text.js'

/**
 * Reads a mail. Whatever can be read is given, with a warning for each thing that could not; rejects with an
 * Error only if the MIME parser itself is defeated. Takes no part in limiting time or memory.
 */
export async function parseMail(
  raw: Buffer,
  envelope: Envelope,
  limits: MailLimits = defaultMailLimits,
): Promise<ParsedMail> {
  const mime = await readMime(raw, limits)
  const warnings = [...mime.warnings]
  const subject = firstValue(mime.headers, 'subject')
  const text = joinParts(mime.texts, limits.maxTextBytes, 'text-truncated', warnings)
  const html = joinParts(mime.htmls, limits.maxHtmlBytes, 'html-truncated', warnings)
  const seen = html === null ? null : readHtml(html)
  const links = findLinks(seen, text, limits.maxLinks)
  if (links.isCut) {
    const detail = `Only the first ${limits.maxLinks} links are listed, none longer than ${maxHrefLength} characters.`
    warnings.push({ code: 'too-many-links', detail })
  }
  return {
    subject,
    sender: mime.from[0]?.address ?? envelope.mailFrom,
    recipient: envelope.rcptTo,
    from: mime.from,
    to: mime.to,
    cc: mime.cc,
    replyTo: mime.replyTo,
    date: dateOf(firstValue(mime.headers, 'date'), warnings),
    text,
    html,
    htmlText: seen?.text ?? null,
    links: links.found,
    codes: findCodes(subject, text, seen?.text ?? null, limits.maxCodes),
    attachments: mime.attachments,
    headers: mime.headers,
    envelope,
    size: raw.length,
    sha256: hash('sha256', raw),
    warnings,
  }
}

/**
 * Several parts of one kind (a mailing list's footer, text around an image) follow each other line by line. Charsets
 * like UTF-16 can say half a surrogate pair, in whose place stands U+FFFD: strict readers of JSON refuse all of what
 * holds one (RFC 7493, section 2.1).
 */
function joinParts(
  parts: string[],
  maxBytes: number,
  code: 'text-truncated' | 'html-truncated',
  warnings: Warning[],
): string | null {
  if (parts.length === 0) return null
  const whole = parts.join('\n').toWellFormed()
  const kept = cutToJsonBytes(whole, maxBytes)
  if (kept.length < whole.length)
    warnings.push({ code, detail: `Only what takes ${maxBytes} bytes in JSON is kept.` })
  return kept
}

function dateOf(value: string | null, warnings: Warning[]): string | null {
  if (value === null) return null
  const date = readDate(value)
  if (date === null) warnings.push({ code: 'invalid-date', detail: 'The Date header names no moment.' })
  return date
}

/** As much of a header is read of a mail that could not be read as a whole. */
const HEADER_BYTES = 16 * 1024

/**
 * What the beginning of its header says of a mail that defeats the parser: no text, links, codes or attachments.
 * Resolves for any bytes, in a time that does not grow with their number but for their digest.
 */
export async function parseHeader(raw: Buffer, envelope: Envelope, warning: Warning): Promise<ParsedMail> {
  const nothing = parseNothing(raw, envelope, warning)
  try {
    const head = await parseMail(headerOf(raw), envelope)
    const { subject, sender, from, to, cc, replyTo, date, headers } = head
    return { ...nothing, subject, sender, from, to, cc, replyTo, date, headers }
  } catch {
    return nothing
  }
}

/** The same of a mail of which not even that can be read: its envelope and its source. */
export function parseNothing(raw: Buffer, envelope: Envelope, warning: Warning): ParsedMail {
  return {
    subject: null,
    sender: envelope.mailFrom,
    recipient: envelope.rcptTo,
    from: [],
    to: [],
    cc: [],
    replyTo: [],
    date: null,
    text: null,
    html: null,
    htmlText: null,
    links: [],
    codes: [],
    attachments: [],
    headers: [],
    envelope,
    size: raw.length,
    sha256: hash('sha256', raw),
    warnings: [warning],
  }
}

/** Up to the first empty line, or as many whole lines as are read. */
function headerOf(raw: Buffer): Buffer {
  const start = raw.subarray(0, HEADER_BYTES)
  const ends = ['\r\n\r\n', '\n\n'].map((end) => start.indexOf(end)).filter((at) => at !== -1)
  const end =
    ends.length > 0 ? Math.min(...ends) : start.length < raw.length ? start.lastIndexOf('\n') : start.length
  return Buffer.concat([start.subarray(0, Math.max(end, 0)), Buffer.from('\r\n\r\n')])
}
