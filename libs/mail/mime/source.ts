import type { MailLimits } from '../limits.js'
import type { Warning } from '../message.js'

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
