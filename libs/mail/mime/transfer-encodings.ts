const PIECE = 64 * 1024

/**
 * As `text.replaceAll(from, to)`, of at most two characters that differ, for texts of any length. V8's own makes of each
 * occurrence several objects: a text of nothing else takes eighty times its bytes, and many times as long.
 */
export function replaceEach(text: string, from: string, to: string): string {
  if (!text.includes(from)) return text
  const pieces: string[] = []
  for (let at = 0; at < text.length;) {
    const end = at + PIECE
    // What is looked for is not to be cut in two.
    const next = from.length > 1 && text.startsWith(from, end - 1) ? end + 1 : end
    pieces.push(text.slice(at, next).split(from).join(to))
    at = next
  }
  return pieces.join('')
}

const LF = 10
const CR = 13
const SPACE = 32
const TAB = 9
/** It pads base64, and escapes in quoted-printable. */
const EQUALS = 61
/** A line in which base64 could go on is no longer than this. */
const maxLine = 1_000

/**
 * Decodes base64 (RFC 2045, section 6.8): characters outside of the alphabet and line breaks count for nothing, padding
 * may be missing. Padding ends it, so that a mailing list's footer below adds nothing, unless the next line is base64
 * again: some senders encode each piece by itself.
 */
export function decodeBase64(encoded: Buffer): Buffer {
  const decoded = Buffer.allocUnsafe(Math.ceil((encoded.length * 3) / 4))
  let length = 0
  for (let start = 0; start !== -1;) {
    const padding = encoded.indexOf(EQUALS, start)
    const text = encoded.toString('latin1', start, padding === -1 ? encoded.length : padding)
    // Node would decode the letters of base64url, too.
    length += decoded.write(replaceEach(replaceEach(text, '-', ''), '_', ''), length, 'base64')
    start = padding === -1 ? -1 : nextBase64(encoded, padding)
  }
  return decoded.subarray(0, length)
}

const beforeBase64 = /^\s*=*\s*/
const base64Line = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?\s*$/

/** Where base64 goes on after its padding, with a line of it; -1 if it does not. */
function nextBase64(encoded: Buffer, padding: number): number {
  for (let start = padding; start < encoded.length;) {
    const lineFeed = encoded.indexOf(LF, start)
    const end = lineFeed === -1 ? encoded.length : lineFeed
    if (end - start > maxLine) return -1
    const line = encoded.toString('latin1', start, end)
    const before = beforeBase64.exec(line)?.[0].length ?? 0
    if (before < line.length) return base64Line.test(line.slice(before)) ? start + before : -1
    start = end + 1
  }
  return -1
}

/**
 * Decodes a body in quoted-printable (RFC 2045, section 6.7) in linear time. White space at the end of a line
 * is dropped, soft line breaks joined; what breaks the rules stays as it stands, 8-bit bytes included.
 */
export function decodeQuotedPrintable(encoded: Buffer): Buffer {
  const decoded = Buffer.allocUnsafe(encoded.length)
  let length = 0
  /** Past the last byte of the line that isn't literal white space. */
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

/** Negative enough that no other digit makes up for it. */
function hexDigit(byte: number | undefined): number {
  if (byte === undefined) return -1_000
  if (byte >= 48 && byte <= 57) return byte - 48
  const letter = byte | 0x20
  return letter >= 97 && letter <= 102 ? letter - 87 : -1_000
}

/** Just past the line's end if nothing but white space is left of it, else -1. */
function softBreakEnd(encoded: Buffer, start: number): number {
  // A line has at most 76 characters; looking no further keeps the whole linear.
  const limit = Math.min(encoded.length, start + 78)
  let at = start
  while (at < limit && (encoded[at] === SPACE || encoded[at] === TAB)) at++
  if (at >= encoded.length) return at
  if (encoded[at] === CR && encoded[at + 1] === LF) return at + 2
  return encoded[at] === LF ? at + 1 : -1
}
