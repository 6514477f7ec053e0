import { Transform, type TransformCallback } from 'node:stream'

const LF = 10
const PADDING = 61
/** What `base64Values` has for a byte outside of the alphabet. */
export const NOT_BASE64 = 255
/** A line in which base64 could go on is no longer than this. */
const maxLine = 1_000

/** The six bits of each byte of the alphabet (RFC 4648, section 4). */
export const base64Values = new Uint8Array(256).fill(NOT_BASE64)
const alphabet = Buffer.from('ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/')
for (const [value, character] of alphabet.entries()) base64Values[character] = value

/**
 * Decodes base64 piece by piece (RFC 2045, section 6.8): characters outside of the alphabet and line breaks
 * count for nothing, padding may be missing. Padding ends it, so that a mailing list's footer below adds nothing,
 * unless the next line is base64 again: some senders encode each piece by itself.
 */
export class Base64 {
  private bits = 0
  private bitCount = 0
  private isPadded = false
  private isOver = false
  /** What stands since the padding, up to its line's end. */
  private line = ''

  decode(encoded: Buffer): Buffer {
    if (this.isOver) return Buffer.alloc(0)
    const decoded = Buffer.allocUnsafe(Math.ceil((encoded.length * 3) / 4) + maxLine)
    let at = 0
    let length = 0
    while (at < encoded.length) {
      if (this.isPadded) {
        length = this.addAfterPadding(encoded[at] ?? 0, decoded, length)
        at++
        continue
      }
      // In variables of its own: nearly all of a large mail goes through here.
      let { bits, bitCount } = this
      for (; at < encoded.length; at++) {
        const byte = encoded[at] ?? 0
        const value = base64Values[byte] ?? NOT_BASE64
        if (value === NOT_BASE64) {
          if (byte === PADDING) break
          continue
        }
        bits = (bits << 6) | value
        bitCount += 6
        if (bitCount < 8) continue
        bitCount -= 8
        decoded[length++] = bits >> bitCount
      }
      this.isPadded = at < encoded.length
      this.bits = bits
      this.bitCount = this.isPadded ? 0 : bitCount
    }
    return decoded.subarray(0, length)
  }

  /** What the last line after padding still holds. */
  end(): Buffer {
    if (this.isOver || !this.isPadded) return Buffer.alloc(0)
    const decoded = Buffer.allocUnsafe(maxLine)
    return decoded.subarray(0, this.addAfterPadding(LF, decoded, 0))
  }

  private add(value: number, decoded: Buffer, length: number): number {
    if (value === NOT_BASE64) return length
    this.bits = ((this.bits << 6) | value) & 0xffff
    this.bitCount += 6
    if (this.bitCount < 8) return length
    this.bitCount -= 8
    decoded[length] = this.bits >> this.bitCount
    return length + 1
  }

  private addAfterPadding(byte: number, decoded: Buffer, start: number): number {
    if (this.isOver) return start
    if (byte !== LF) {
      this.line += String.fromCharCode(byte)
      this.isOver = this.line.length > maxLine
      return start
    }
    const line = this.line.trim().replace(/^=+/, '').trim()
    this.line = ''
    if (line === '') return start
    if (line.length % 4 !== 0 || !/^[A-Za-z0-9+/]+={0,2}$/.test(line)) {
      this.isOver = true
      return start
    }
    this.isPadded = line.endsWith('=')
    let length = start
    for (const character of line) {
      length = this.add(base64Values[character.charCodeAt(0)] ?? NOT_BASE64, decoded, length)
    }
    if (this.isPadded) this.bitCount = 0
    return length
  }
}

export function decodeBase64(encoded: Buffer): Buffer {
  const base64 = new Base64()
  return Buffer.concat([base64.decode(encoded), base64.end()])
}

export class Base64Decoder extends Transform {
  private readonly base64 = new Base64()

  override _transform(piece: Buffer, _encoding: BufferEncoding, done: TransformCallback): void {
    done(null, this.base64.decode(piece))
  }

  override _flush(done: TransformCallback): void {
    done(null, this.base64.end())
  }
}

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
