import type { MailLimits } from '../limits.js'
import type { Warning } from '../message.js'
import { contextWithin, readPartHeader, type PartHeader } from './part-header.js'

/*
 * Splits the source of a mail into its parts, in two steps: `prepareSource` applies the limits, and `readWellFormed`
 * finds the parts if every multipart has all of its delimiters.
 */

/** A part that is not a multipart, with its body as it was sent. */
export interface Part {
  header: PartHeader
  body: Buffer
}

export interface Parts {
  /** The header of the mail itself; undefined if it has none. */
  header: PartHeader | undefined
  /** Parts whose text is shown, in the order of the mail. */
  shown: Part[]
  /** In the order of the mail. */
  attached: Part[]
}

const LF = 10
const CR = 13
const SPACE = 32
const TAB = 9
const COLON = 58
const END_OF_LINE = Buffer.from('\r\n')
const LINE_FEED_THEN_DASHES = Buffer.from('\n--')
const BYTE_ORDER_MARK = Buffer.from([0xef, 0xbb, 0xbf])

/**
 * Prepares a source for parsing: cuts off headers and parts above the limits, and adds the empty line between header
 * and body if it is missing. Almost every mail is returned unchanged. Adds to the warnings.
 */
export function prepareSource(source: Buffer, limits: MailLimits, warnings: Warning[]): Buffer {
  const raw = BYTE_ORDER_MARK.equals(source.subarray(0, BYTE_ORDER_MARK.length))
    ? source.subarray(BYTE_ORDER_MARK.length)
    : source
  const header = scanHeader(raw, limits)
  const end = scanParts(raw, limits.maxParts)
  if (end < raw.length) {
    warnings.push({ code: 'too-many-parts', detail: `Only the first ${limits.maxParts} parts were read.` })
  }
  if (header.isCut) {
    warnings.push({
      code: 'too-many-headers',
      detail: `Only the first ${limits.maxHeaders} headers, within ${limits.maxHeaderBytes} bytes, were read.`,
    })
  }
  if (!header.isSeparatorMissing) return raw.subarray(0, end)
  return Buffer.concat([raw.subarray(0, header.end), END_OF_LINE, raw.subarray(header.bodyStart, end)])
}

interface HeaderBlock {
  /** The end of the last line that is kept. */
  end: number
  /** The start of what follows the header; after `end` only if headers were cut. */
  bodyStart: number
  isCut: boolean
  isSeparatorMissing: boolean
}

/**
 * Finds the end of the header: the first line that can't belong to it. If this line is not empty, it is the first line
 * of the body, as in Postfix: a test may send `Subject: x` and then text without an empty line.
 */
function scanHeader(raw: Buffer, limits: MailLimits): HeaderBlock {
  let fields = 0
  let keptEnd = -1
  let start = 0
  while (start < raw.length) {
    const first = raw[start]
    if (isEmptyLine(raw, start)) break
    const isContinuation = start > 0 && (first === SPACE || first === TAB)
    if (!isContinuation) {
      if (!isFieldStart(raw, start)) break
      fields++
    }
    const next = afterLine(raw, start)
    if (keptEnd === -1 && (fields > limits.maxHeaders || next > limits.maxHeaderBytes)) keptEnd = start
    start = next
  }
  const isAtSeparator = start >= raw.length || isEmptyLine(raw, start)
  if (keptEnd === -1) {
    return { end: start, bodyStart: start, isCut: false, isSeparatorMissing: !isAtSeparator }
  }
  const bodyStart = isAtSeparator ? afterLine(raw, start) : start
  return { end: keptEnd, bodyStart, isCut: true, isSeparatorMissing: true }
}

export function isEmptyLine(raw: Buffer, start: number): boolean {
  return raw[start] === LF || (raw[start] === CR && raw[start + 1] === LF)
}

/**
 * Whether a line begins with printable US-ASCII and a colon, possibly after white space (RFC 5322, section 2.2), or is
 * mbox's first line.
 */
function isFieldStart(raw: Buffer, start: number): boolean {
  let at = start
  for (; at < raw.length; at++) {
    const byte = raw[at]
    if (byte === COLON) return at > start
    if (byte === undefined || byte <= SPACE || byte > 126) break
  }
  if (start === 0 && /^>?From $/.test(raw.toString('latin1', 0, at + 1))) return true
  while (raw[at] === SPACE || raw[at] === TAB) at++
  return at > start && raw[at] === COLON
}

/** The end of the line that begins at `start`, including its line feed. */
export function afterLine(raw: Buffer, start: number): number {
  const lineFeed = raw.indexOf(LF, start)
  return lineFeed === -1 ? raw.length : lineFeed + 1
}

/** The start of the first part above the limit, or the length of the source if there is none. */
function scanParts(raw: Buffer, maxParts: number): number {
  // Each part except the root follows a line that begins with two dashes: a source with few such lines is within the
  // limit.
  let dashedLines = 0
  for (const _ of findDashedLines(raw)) if (++dashedLines === maxParts) break
  if (dashedLines < maxParts) return raw.length

  const boundaries = declaredBoundaries(raw)
  let parts = 1
  for (const at of findDashedLines(raw)) {
    const start = at + LINE_FEED_THEN_DASHES.length
    const lineFeed = raw.indexOf(LF, start)
    const end = lineFeed === -1 ? raw.length : lineFeed
    // RFC 2046, section 5.1.1: a boundary has at most 70 characters, so a much longer line contains none.
    if (end - start >= 300 || !boundaries.has(raw.toString('latin1', start, end).trimEnd())) continue
    parts++
    // The line break before a delimiter belongs to the delimiter (RFC 2046, section 5.1.1).
    if (parts > maxParts) return raw[at - 1] === CR ? at - 1 : at
  }
  return raw.length
}

/** The line feeds before lines that begin with two dashes. */
function* findDashedLines(raw: Buffer): Generator<number> {
  for (
    let at = raw.indexOf(LINE_FEED_THEN_DASHES);
    at !== -1;
    at = raw.indexOf(LINE_FEED_THEN_DASHES, at + 1)
  )
    yield at
}

function declaredBoundaries(raw: Buffer): Set<string> {
  const boundaries = new Set<string>()
  const declaration = /boundary\s{0,20}=\s{0,20}(?:"([^"\r\n]{1,250})"|([^\s;"]{1,250}))/gi
  for (const match of raw.toString('latin1').matchAll(declaration)) {
    boundaries.add((match[1] ?? match[2] ?? '').trimEnd())
  }
  return boundaries
}

/** A multipart whose closing delimiter has not been reached yet. */
interface Multipart {
  header: PartHeader
  boundary: string
}

const BREAK_THEN_DASHES = Buffer.from('\n\r--')
/** RFC 2046 allows 70 characters; some senders use more. */
export const MAX_DELIMITER_LENGTH = 1_000
/** Maximum of multiparts around a part: each line with dashes is compared with the delimiters of all of them. */
const MAX_OPEN = 10

/**
 * Reads a mail in which every multipart has all of its delimiters (RFC 2046, section 5.1.1), as in nearly all mails.
 * Null for any other mail, which `readTree` reads. If both can read a mail, they return the same parts. `source` is
 * the result of `prepareSource`.
 */
export function readWellFormed(source: Buffer, { maxDepth, maxHeaderBytes }: MailLimits): Parts | null {
  // `readTree` treats such a line as a delimiter; a search for dashes after a line feed would miss it.
  if (source.includes(BREAK_THEN_DASHES)) return null
  const shown: Part[] = []
  const attached: Part[] = []
  const open: Multipart[] = []
  let mail: PartHeader | undefined
  let start = 0
  for (;;) {
    const parent = open.at(-1)
    const bodyStart = endOfHeader(source, start)
    if (bodyStart === null) return null
    if (parent !== undefined) {
      if (bodyStart - start > maxHeaderBytes) return null
      if (nextDelimiter(source.subarray(0, bodyStart), start, open) !== null) return null
    }
    const header = readPartHeader(source.subarray(start, bodyStart), contextWithin(parent?.header))
    const { boundary } = header
    mail ??= header
    if (header.type.startsWith('multipart/') && boundary === null) return null
    if (boundary !== null) {
      if (open.length >= Math.min(maxDepth, MAX_OPEN) || open.some(isConfusableWith(boundary))) return null
      open.push({ header, boundary })
    }
    let delimiter = nextDelimiter(source, bodyStart, open)
    if (boundary === null) {
      const bodyEnd = delimiter === null ? source.length : beforeLineBreak(source, bodyStart, delimiter.start)
      const parts = header.shownAs === null ? attached : shown
      parts.push({ header, body: source.subarray(bodyStart, bodyEnd) })
      if (parent === undefined) return { header: mail, shown, attached }
    } else if (delimiter?.isLast === true) return null
    while (delimiter?.isLast === true && delimiter.multipart === open.at(-1)) {
      open.pop()
      if (open.length === 0) return { header: mail, shown, attached }
      delimiter = nextDelimiter(source, delimiter.end, open)
    }
    if (delimiter === null || delimiter.multipart !== open.at(-1)) return null
    start = delimiter.end
  }
}

/** Whether one line could be a delimiter of both. */
function isConfusableWith(boundary: string): (other: Multipart) => boolean {
  return (other) => boundary.startsWith(other.boundary) || other.boundary.startsWith(boundary)
}

/** The end of the empty line after the header that begins at `start`; null if there is none. */
function endOfHeader(source: Buffer, start: number): number | null {
  for (let at = start; at < source.length; at = afterLine(source, at)) {
    if (isEmptyLine(source, at)) return afterLine(source, at)
  }
  return null
}

interface Delimiter {
  multipart: Multipart
  /** The start of its line. */
  start: number
  /** The end of its line. */
  end: number
  /** Whether it closes its multipart. */
  isLast: boolean
}

/** The next delimiter of any open multipart; null if there is none. `from` is the start of any line but the first. */
function nextDelimiter(source: Buffer, from: number, open: readonly Multipart[]): Delimiter | null {
  if (open.length === 0) return null
  for (let at = from - 1; ; at += 1) {
    at = source.indexOf(LINE_FEED_THEN_DASHES, at)
    if (at === -1) return null
    const start = at + 1
    const end = afterLine(source, start)
    if (end - start > MAX_DELIMITER_LENGTH) continue
    const first = source[at + LINE_FEED_THEN_DASHES.length]
    if (!open.some(({ boundary }) => boundary.charCodeAt(0) === first)) continue
    const text = source.toString('latin1', at + LINE_FEED_THEN_DASHES.length, end).trimEnd()
    const isLast = text.endsWith('--')
    for (const multipart of open) {
      if (text === multipart.boundary) return { multipart, start, end, isLast: false }
      if (isLast && text.length === multipart.boundary.length + 2 && text.startsWith(multipart.boundary)) {
        return { multipart, start, end, isLast }
      }
    }
  }
}

/** The end of a body: the line break before a delimiter belongs to the delimiter. */
function beforeLineBreak(source: Buffer, bodyStart: number, delimiter: number): number {
  if (delimiter === bodyStart) return bodyStart
  const isCrLf = delimiter - bodyStart > 1 && source[delimiter - 2] === CR
  return delimiter - (isCrLf ? 2 : 1)
}
