import type { MailLimits } from '../limits.js'
import { placeWithin, readPartHeader, type PartHeader } from './part-header.js'
import { afterLine, isEmptyLine } from './source.js'

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

const CR = 13
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
