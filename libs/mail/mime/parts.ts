import { DEFAULT_MAIL_LIMITS, type MailLimits } from '../limits.js'
import type { Warning } from '../message.js'
import { contextWithin, readFields, readPartHeader, showField, type PartHeader } from './part-header.js'

/*
 * Splits the source of a mail into its parts.
 */

/** A part, with its body as it was sent: no multipart, unless it is shown whole. */
export interface Part {
  header: PartHeader
  body: Buffer
}

export interface Parts {
  /** The header of the mail itself. */
  header: PartHeader
  /** Parts whose text is shown, in the order of the mail. */
  shown: Part[]
  /** In the order of the mail. */
  attached: Part[]
}

const LF = 10
const CR = 13
const SPACE = 32
const TAB = 9
const DASH = 45
const COLON = 58
const LINE_FEED_THEN_DASHES = Buffer.from('\n--')
const BYTE_ORDER_MARK = Buffer.from([0xef, 0xbb, 0xbf])
/** RFC 2046 allows 70 characters; some senders use more. */
const MAX_DELIMITER_LENGTH = 1_000

/**
 * Reads the parts of a mail (RFC 2046, section 5.1), within the limits. Adds to the warnings. Never fails. A multipart
 * may lack its end; one without any part, or without a boundary, is shown whole.
 */
export function readParts(raw: Buffer, limits: MailLimits, warnings: Warning[]): Parts {
  const hasMark = BYTE_ORDER_MARK.equals(raw.subarray(0, BYTE_ORDER_MARK.length))
  return new PartReader(hasMark ? raw.subarray(BYTE_ORDER_MARK.length) : raw, limits, warnings).read()
}

/** A multipart whose closing delimiter has not been reached yet. */
interface Multipart {
  header: PartHeader
  /** The delimiter before a part, and the one after the last part, without the dashes at their beginning. */
  boundary: string
  closing: string
}

/** A line that begins a part of a multipart, or closes the multipart. */
interface Delimiter {
  /** The index of its multipart among the open ones. */
  index: number
  start: number
  end: number
  isLast: boolean
}

class PartReader {
  private readonly shown: Part[] = []
  private readonly attached: Part[] = []
  /** From the outermost one inwards. */
  private readonly open: Multipart[] = []

  constructor(
    private readonly source: Buffer,
    private readonly limits: MailLimits,
    private readonly warnings: Warning[],
  ) {}

  read(): Parts {
    const { maxHeaders, maxHeaderBytes, maxParts } = this.limits
    const { end, bodyStart, isCut } = scanHeader(this.source, this.limits)
    if (isCut)
      this.warn(
        'too-many-headers',
        `Only the first ${maxHeaders} headers, within ${maxHeaderBytes} bytes, were read.`,
      )
    const header = readPartHeader(this.source.subarray(0, end), contextWithin(undefined))
    let next = this.readBody(header, bodyStart)
    for (let count = 1; next !== null; count++) {
      if (count === maxParts) {
        this.warn('too-many-parts', `Only the first ${maxParts} parts were read.`)
        break
      }
      next = this.readPart(next)
    }
    return { header, shown: this.shown, attached: this.attached }
  }

  /** Reads the part that begins at `start`. Returns the start of the next part; null if there is none. */
  private readPart(start: number): number | null {
    const { maxHeaderBytes } = this.limits
    const end = this.endOfHeader(start)
    const hasEnd = isEmptyLine(this.source, end)
    // Nothing is between two delimiters, or after the last one.
    if (end === start && !hasEnd) return this.startAfter(this.nextDelimiter(start))
    let block = this.source.subarray(start, end)
    if (block.length > maxHeaderBytes) {
      this.warn('too-many-headers', `Only the first ${maxHeaderBytes} bytes of a part's header were read.`)
      block = block.subarray(0, block.lastIndexOf(LF, maxHeaderBytes - 1) + 1)
    }
    const header = readPartHeader(block, contextWithin(this.open.at(-1)?.header))
    return this.readBody(header, hasEnd ? afterLine(this.source, end) : end)
  }

  /** The start of the empty line after a header, or of the delimiter that ends it. */
  private endOfHeader(start: number): number {
    let at = start
    while (at < this.source.length && !isEmptyLine(this.source, at) && this.delimiterAt(at) === null) {
      at = afterLine(this.source, at)
    }
    return at
  }

  /** Reads the body of a part, or what is before the first part of a multipart. Returns the start of the next part. */
  private readBody(header: PartHeader, bodyStart: number): number | null {
    const { source, open } = this
    const { boundary } = header
    const isTooDeep = boundary !== null && open.length >= this.limits.maxDepth
    if (isTooDeep) {
      this.warn('too-many-parts', `Parts nested deeper than ${this.limits.maxDepth} were left out.`)
    } else if (boundary !== null) open.push({ header, boundary, closing: `${boundary}--` })
    const isOwn = (delimiter: Delimiter | null) =>
      delimiter !== null && open[delimiter.index]?.header === header

    let delimiter = this.nextDelimiter(bodyStart)
    // A closing delimiter before the first part closes nothing.
    while (delimiter?.isLast === true && isOwn(delimiter)) delimiter = this.nextDelimiter(delimiter.end)
    if (!isTooDeep && !isOwn(delimiter)) {
      const bodyEnd = delimiter === null ? source.length : beforeLineBreak(source, bodyStart, delimiter.start)
      this.add(header, source.subarray(bodyStart, bodyEnd))
    }
    return this.startAfter(delimiter)
  }

  /** The start of the part after a delimiter, or after the multiparts that it closes; null if there is none. */
  private startAfter(delimiter: Delimiter | null): number | null {
    let next = delimiter
    while (next?.isLast === true) {
      this.open.length = next.index
      next = this.nextDelimiter(next.end)
    }
    if (next === null) return null
    // An inner multipart may lack its end (RFC 2046, section 5.1.2).
    this.open.length = next.index + 1
    return next.end
  }

  /** A multipart in which no part was found is shown whole. */
  private add(header: PartHeader, body: Buffer): void {
    const isMultipart = header.type.startsWith('multipart/')
    const part: Part = {
      header: isMultipart ? { ...header, shownAs: 'text/plain', encoding: '' } : header,
      body,
    }
    const parts = part.header.shownAs === null ? this.attached : this.shown
    parts.push(part)
  }

  /** The next delimiter of any open multipart. `from` is the start of any line but the first. */
  private nextDelimiter(from: number): Delimiter | null {
    if (this.open.length === 0) return null
    for (let at = from - 1; ; at++) {
      at = this.source.indexOf(LINE_FEED_THEN_DASHES, at)
      if (at === -1) return null
      const delimiter = this.delimiterAt(at + 1)
      if (delimiter !== null) return delimiter
    }
  }

  /** The delimiter in the line that begins at `start`, possibly with white space after it; null if it is none. */
  private delimiterAt(start: number): Delimiter | null {
    const { source, open } = this
    if (source[start] !== DASH || source[start + 1] !== DASH) return null
    const end = afterLine(source, start)
    if (end - start > MAX_DELIMITER_LENGTH) return null
    const text = source.toString('latin1', start + 2, end).trimEnd()
    const index = open.findLastIndex(({ boundary, closing }) => text === boundary || text === closing)
    return index === -1 ? null : { index, start, end, isLast: text !== open[index]?.boundary }
  }

  private warn(code: Warning['code'], detail: string): void {
    this.warnings.push({ code, detail })
  }
}

/**
 * Finds the end of a mail's header: the first line that can't belong to it. If this line is not empty, it is the first
 * line of the body, as in Postfix: a test may send `Subject: x` and then text without an empty line. `end` is the end
 * of the last line within the limits.
 */
export function scanHeader(
  raw: Buffer,
  limits: MailLimits,
): { end: number; bodyStart: number; isCut: boolean } {
  let fields = 0
  let keptEnd: number | null = null
  let start = 0
  while (start < raw.length && !isEmptyLine(raw, start)) {
    const isContinuation = start > 0 && (raw[start] === SPACE || raw[start] === TAB)
    if (!isContinuation) {
      if (!isFieldStart(raw, start)) break
      fields++
    }
    const next = afterLine(raw, start)
    if (fields > limits.maxHeaders || next > limits.maxHeaderBytes) keptEnd ??= start
    start = next
  }
  const bodyStart = isEmptyLine(raw, start) ? afterLine(raw, start) : start
  return { end: keptEnd ?? start, bodyStart, isCut: keptEnd !== null }
}

/**
 * The value of the first field with a name (in lower case) in the header of a mail, as the API shows it; null if there
 * is none. Takes much less time than reading the mail.
 */
export function readHeader(raw: Buffer, name: string): string | null {
  const block = raw.subarray(0, scanHeader(raw, DEFAULT_MAIL_LIMITS).end)
  const field = readFields(block, name).find(({ key }) => key === name)
  return field === undefined ? null : showField(field, null).value
}

function isEmptyLine(raw: Buffer, start: number): boolean {
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
function afterLine(raw: Buffer, start: number): number {
  const lineFeed = raw.indexOf(LF, start)
  return lineFeed === -1 ? raw.length : lineFeed + 1
}

/** The end of a body: the line break before a delimiter belongs to the delimiter (RFC 2046, section 5.1.1). */
function beforeLineBreak(source: Buffer, bodyStart: number, delimiter: number): number {
  if (delimiter === bodyStart) return bodyStart
  const isCrLf = delimiter - bodyStart > 1 && source[delimiter - 2] === CR
  return delimiter - (isCrLf ? 2 : 1)
}
