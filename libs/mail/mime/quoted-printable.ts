import { Transform, type TransformCallback } from 'node:stream'

const LF = 10
const CR = 13
const EQUALS = 61
const SPACE = 32
const TAB = 9

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

export class QuotedPrintableDecoder extends Transform {
  private readonly pieces: Buffer[] = []

  override _transform(piece: Buffer, _encoding: BufferEncoding, done: TransformCallback): void {
    this.pieces.push(piece)
    done()
  }

  override _flush(done: TransformCallback): void {
    const decoded = decodeQuotedPrintable(Buffer.concat(this.pieces))
    if (decoded.length > 0) this.push(decoded)
    done()
  }
}
