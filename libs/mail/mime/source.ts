import type { Warning, MailLimits } from '../message.js'
import { placeWithin, readPartHeader, type PartHeader } from './part-header.js'

const LF = 10
const CR = 13
const SPACE = 32
const TAB = 9
const COLON = 58
const endOfLine = Buffer.from('\r\n')
const delimiterStart = Buffer.from('\n--')
const byteOrderMark = Buffer.from([0xef, 0xbb, 0xbf])

/**
 * Makes a source fit for the MIME parser: cut where it has too many headers or parts, and with the empty line
 * that separates header and body where that is missing. Almost every mail comes back untouched.
 */
export function prepareSource(given: Buffer, limits: MailLimits, warnings: Warning[]): Buffer {
  const raw = byteOrderMark.equals(given.subarray(0, byteOrderMark.length))
    ? given.subarray(byteOrderMark.length)
    : given
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
  return Buffer.concat([raw.subarray(0, header.end), endOfLine, raw.subarray(header.bodyStart, end)])
}

interface HeaderBlock {
  /** Just past the last line that is kept. */
  end: number
  /** Where reading goes on; past `end` only where headers were cut. */
  bodyStart: number
  isCut: boolean
  isSeparatorMissing: boolean
}

/**
 * The header ends at the first line that can't belong to it. As with Postfix, such a line that isn't empty is
 * the body's first: a test that sends `Subject: x` and then text without an empty line means just that.
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

/** Printable US-ASCII up to a colon (RFC 5322, section 2.2), white space before it allowed; or mbox's first line. */
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

/** Where the line that begins at `start` is over. */
export function afterLine(raw: Buffer, start: number): number {
  const lineFeed = raw.indexOf(LF, start)
  return lineFeed === -1 ? raw.length : lineFeed + 1
}

/** Where the part that is one too many begins, else the source's length. */
function scanParts(raw: Buffer, maxParts: number): number {
  // Each part but the root follows a line that begins with two dashes, so few such lines settle it.
  let dashedLines = 0
  for (const _ of findDashedLines(raw)) if (++dashedLines === maxParts) break
  if (dashedLines < maxParts) return raw.length

  const boundaries = declaredBoundaries(raw)
  let parts = 1
  for (const at of findDashedLines(raw)) {
    const start = at + delimiterStart.length
    const lineFeed = raw.indexOf(LF, start)
    const end = lineFeed === -1 ? raw.length : lineFeed
    // RFC 2046, section 5.1.1: a boundary is at most 70 characters; nothing longer is worth a look-up.
    if (end - start >= 300 || !boundaries.has(raw.toString('latin1', start, end).trimEnd())) continue
    parts++
    // The line's end before a delimiter belongs to the delimiter (RFC 2046, section 5.1.1).
    if (parts > maxParts) return raw[at - 1] === CR ? at - 1 : at
  }
  return raw.length
}

/** The line feeds before lines that begin with two dashes. */
function* findDashedLines(raw: Buffer): Generator<number> {
  for (let at = raw.indexOf(delimiterStart); at !== -1; at = raw.indexOf(delimiterStart, at + 1)) yield at
}

function declaredBoundaries(raw: Buffer): Set<string> {
  const boundaries = new Set<string>()
  const declaration = /boundary\s{0,20}=\s{0,20}(?:"([^"\r\n]{1,250})"|([^\s;"]{1,250}))/gi
  for (const match of raw.toString('latin1').matchAll(declaration)) {
    boundaries.add((match[1] ?? match[2] ?? '').trimEnd())
  }
  return boundaries
}

/** A part that is no multipart, with its body as it was sent. */
export interface Part {
  header: PartHeader
  body: Buffer
}

export interface Parts {
  /** The mail's own; undefined if it has none. */
  header: PartHeader | undefined
  /** Parts whose text is shown, in the order of the mail. */
  shown: Part[]
  /** In the order of the mail. */
  attached: Part[]
}

/** A multipart whose closing delimiter is still to come. */
interface Multipart {
  header: PartHeader
  boundary: string
}

const lineThenDashes = Buffer.from('\n--')
const carriageReturnThenDashes = Buffer.from('\n\r--')
/** RFC 2046 allows 70 characters; some senders use more. */
export const maxDelimiterLength = 1_000
/** Multiparts around a part: each line that begins with dashes is compared with the delimiters of all of them. */
const maxOpen = 10

/**
 * Reads a mail whose multiparts each have all of their delimiters (RFC 2046, section 5.1.1), as nearly all do. Null for
 * any other, which mailparser's tree reads (`read-tree.ts`): of a mail that both read they give the same. Takes a mail as
 * `prepareSource` leaves it.
 */
export function readWellFormed(source: Buffer, { maxDepth, maxHeaderBytes }: MailLimits): Parts | null {
  // The tree takes such a line for a delimiter, which looking for dashes behind a line feed would miss.
  if (source.includes(carriageReturnThenDashes)) return null
  const shown: Part[] = []
  const attached: Part[] = []
  const open: Multipart[] = []
  let mail: PartHeader | undefined
  let start = 0
  for (;;) {
    const around = open.at(-1)
    const bodyStart = endOfHeader(source, start)
    if (bodyStart === null) return null
    if (around !== undefined) {
      if (bodyStart - start > maxHeaderBytes) return null
      if (nextDelimiter(source.subarray(0, bodyStart), start, open) !== null) return null
    }
    const header = readPartHeader(source.subarray(start, bodyStart), placeWithin(around?.header))
    const { boundary } = header
    mail ??= header
    if (header.type.startsWith('multipart/') && boundary === null) return null
    if (boundary !== null) {
      if (open.length >= Math.min(maxDepth, maxOpen) || open.some(isConfusableWith(boundary))) return null
      open.push({ header, boundary })
    }
    let delimiter = nextDelimiter(source, bodyStart, open)
    if (boundary === null) {
      const bodyEnd = delimiter === null ? source.length : beforeLineBreak(source, bodyStart, delimiter.start)
      const parts = header.shownAs === null ? attached : shown
      parts.push({ header, body: source.subarray(bodyStart, bodyEnd) })
      if (around === undefined) return { header: mail, shown, attached }
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

/** Whether a line may be a delimiter of either. */
function isConfusableWith(boundary: string): (other: Multipart) => boolean {
  return (other) => boundary.startsWith(other.boundary) || other.boundary.startsWith(boundary)
}

/** Behind the empty line that ends the header which begins at `start`; null if there is none. */
function endOfHeader(source: Buffer, start: number): number | null {
  for (let at = start; at < source.length; at = afterLine(source, at)) {
    if (isEmptyLine(source, at)) return afterLine(source, at)
  }
  return null
}

interface Delimiter {
  multipart: Multipart
  /** Of its line. */
  start: number
  /** Behind its line. */
  end: number
  /** Whether it closes its multipart. */
  isLast: boolean
}

/** The next delimiter of any open multipart, from the start of a line other than the first on; null if there is none. */
function nextDelimiter(source: Buffer, from: number, open: readonly Multipart[]): Delimiter | null {
  if (open.length === 0) return null
  for (let at = from - 1; ; at += 1) {
    at = source.indexOf(lineThenDashes, at)
    if (at === -1) return null
    const start = at + 1
    const end = afterLine(source, start)
    if (end - start > maxDelimiterLength) continue
    const first = source[at + lineThenDashes.length]
    if (!open.some(({ boundary }) => boundary.charCodeAt(0) === first)) continue
    const text = source.toString('latin1', at + lineThenDashes.length, end).trimEnd()
    const isLast = text.endsWith('--')
    for (const multipart of open) {
      if (text === multipart.boundary) return { multipart, start, end, isLast: false }
      if (isLast && text.length === multipart.boundary.length + 2 && text.startsWith(multipart.boundary)) {
        return { multipart, start, end, isLast }
      }
    }
  }
}

/** Where a body ends: the line break before a delimiter belongs to the delimiter. */
function beforeLineBreak(source: Buffer, bodyStart: number, delimiter: number): number {
  if (delimiter === bodyStart) return bodyStart
  const isLong = delimiter - bodyStart > 1 && source[delimiter - 2] === CR
  return delimiter - (isLong ? 2 : 1)
}
