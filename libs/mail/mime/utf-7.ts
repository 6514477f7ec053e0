import { base64Values, NOT_BASE64 } from './base64.js'

const PLUS = 0x2b
const MINUS = 0x2d

/**
 * Decodes UTF-7 (RFC 2152): UTF-16 in base64 between a plus sign and whatever is no base64, of which a minus sign
 * is dropped; `+-` is a plus sign. Bytes beyond ASCII, which have no place there, are read as Latin-1's.
 */
export function decodeUtf7(bytes: Buffer): string {
  // Never more than one unit a byte.
  const units = Buffer.allocUnsafe(bytes.length * 2)
  let length = 0
  let isShifted = false
  let isFresh = false
  let bits = 0
  let bitCount = 0
  for (const byte of bytes) {
    const value = isShifted ? (base64Values[byte] ?? NOT_BASE64) : NOT_BASE64
    if (value !== NOT_BASE64) {
      isFresh = false
      bits = ((bits << 6) | value) & 0x3fffff
      bitCount += 6
      if (bitCount < 16) continue
      bitCount -= 16
      length = units.writeUInt16LE((bits >> bitCount) & 0xffff, length)
      continue
    }
    const isEnd = isShifted
    isShifted = false
    if (isEnd && byte === MINUS) {
      if (isFresh) length = units.writeUInt16LE(PLUS, length)
      continue
    }
    if (byte === PLUS) {
      isShifted = true
      isFresh = true
      bits = 0
      bitCount = 0
      continue
    }
    length = units.writeUInt16LE(byte, length)
  }
  return units.toString('utf16le', 0, length)
}
