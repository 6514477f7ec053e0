/*
 * Decodes base64 and quoted-printable, and replaces characters of very long texts.
 */

const LF = 10
const CR = 13
const SPACE = 32
const TAB = 9
/** Padding in base64, and the escape character of quoted-printable. */
const EQUALS = 61
/** After padding, a line that is longer than this is not base64. */
const MAX_LINE_LENGTH = 1_000

/**
 * Decodes base64 (RFC 2045, section 6.8). Line breaks and characters outside of the alphabet are ignored, and padding
 * may be missing. Padding ends the content, so that a mailing list's footer after it adds nothing, unless the next
 * line is base64 again: some senders encode each piece separately.
 */
export function decodeBase64(encoded: Buffer): Buffer {
  const decoded = Buffer.allocUnsafe(Math.ceil((encoded.length * 3) / 4))
  let length = 0
  for (let start = 0; start !== -1;) {
    const padding = encoded.indexOf(EQUALS, start)
    const text = encoded.toString('latin1', start, padding === -1 ? encoded.length : padding)
    // Node also decodes base64url, so its characters are removed.
    length += decoded.write(replaceEach(replaceEach(text, '-', ''), '_', ''), length, 'base64')
    start = padding === -1 ? -1 : nextBase64(encoded, padding)
  }
  return decoded.subarray(0, length)
}

const BEFORE_BASE64 = /^\s*=*\s*/
const BASE64_LINE = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?\s*$/

/** The position of the next line of base64 after padding; -1 if there is none. */
function nextBase64(encoded: Buffer, padding: number): number {
  for (let start = padding; start < encoded.length;) {
    const lineFeed = encoded.indexOf(LF, start)
    const end = lineFeed === -1 ? encoded.length : lineFeed
    if (end - start > MAX_LINE_LENGTH) return -1
    const line = encoded.toString('latin1', start, end)
    const before = BEFORE_BASE64.exec(line)?.[0].length ?? 0
    if (before < line.length) return BASE64_LINE.test(line.slice(before)) ? start + before : -1
    start = end + 1
  }
  return -1
}

/**
 * Decodes a body in quoted-printable (RFC 2045, section 6.7). Drops white space at the end of a line and joins soft
 * line breaks. Invalid input, such as 8-bit bytes, is left unchanged. Takes linear time.
 */
export function decodeQuotedPrintable(encoded: Buffer): Buffer {
  const decoded = Buffer.allocUnsafe(encoded.length)
  let length = 0
  /** Length up to the last byte that is not literal white space. */
  let solidLength = 0
  for (let at = 0; at < encoded.length; at++) {
    const byte = encoded[at] ?? 0
    if (byte === EQUALS) {
      const value = hexDigit(encoded[at + 1]) * 16 + hexDigit(encoded[at + 2])
      if (value >= 0) {
        decoded[length++] = value
        solidLength = length
        at += 2
        continue
      }
      const lineEnd = softBreakEnd(encoded, at + 1)
      if (lineEnd !== -1) {
        solidLength = length
        at = lineEnd - 1
        continue
      }
    }
    if (byte === LF || (byte === CR && encoded[at + 1] === LF)) length = solidLength
    decoded[length++] = byte
    if (byte !== SPACE && byte !== TAB) solidLength = length
  }
  return decoded.subarray(0, solidLength)
}

/** The value of a hexadecimal digit; if it is none, so negative that a second digit can't make the sum positive. */
function hexDigit(byte: number | undefined): number {
  if (byte === undefined) return -1_000
  if (byte >= 48 && byte <= 57) return byte - 48
  const letter = byte | 0x20
  return letter >= 97 && letter <= 102 ? letter - 87 : -1_000
}

/** The position after the line break if only white space comes before it, else -1. */
function softBreakEnd(encoded: Buffer, start: number): number {
  // A line has at most 76 characters. Without this limit, the time would not be linear.
  const limit = Math.min(encoded.length, start + 78)
  let at = start
  while (at < limit && (encoded[at] === SPACE || encoded[at] === TAB)) at++
  if (at >= encoded.length) return at
  if (encoded[at] === CR && encoded[at + 1] === LF) return at + 2
  return encoded[at] === LF ? at + 1 : -1
}

const PIECE_LENGTH = 64 * 1024

/**
 * Returns the same as `text.replaceAll(from, to)` for a `from` of one character or two different ones. V8 creates
 * several objects for each occurrence: a long text with nothing else takes eighty times its bytes, and much more time.
 */
export function replaceEach(text: string, from: string, to: string): string {
  if (!text.includes(from)) return text
  const pieces: string[] = []
  for (let at = 0; at < text.length;) {
    const end = at + PIECE_LENGTH
    // A piece must not end within an occurrence.
    const next = from.length > 1 && text.startsWith(from, end - 1) ? end + 1 : end
    pieces.push(text.slice(at, next).split(from).join(to))
    at = next
  }
  return pieces.join('')
}
