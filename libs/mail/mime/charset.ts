import { isAscii, isUtf8 } from 'node:buffer'
import iconv from 'iconv-lite'
import { charsetName } from './charset-names.js'
import { decodeHz, decodeIso2022Jp, decodeIso2022Kr } from './iso-2022.js'

export interface DecodedText {
  text: string
  /**
   * The charset that was used, if it is a guess: none is declared, or the declared one is unknown or does not fit the
   * bytes. Else null.
   */
  guessed: string | null
}

type Decode = (bytes: Buffer) => DecodedText

const WINDOWS1252 = 'windows-1252'
/** By the names that `charsetName` returns. */
const decoders = new Map<string, Decode>()

/**
 * Decodes text in its declared charset. Names mean what the Encoding Standard says (ISO-8859-1 and US-ASCII are
 * windows-1252, GB2312 is GBK). Text without a charset is UTF-8 or ISO-2022-JP if the bytes are valid, else
 * windows-1252. Text declared as UTF-8 in which no character beyond ASCII is valid UTF-8 is windows-1252. Never fails:
 * a byte without a character becomes U+FFFD.
 */
export function decodeText(bytes: Buffer, declared: string | null): DecodedText {
  if (declared === null || /^[\s"',;]*$/.test(declared)) return decodeUndeclared(bytes)
  const name = charsetName(declared)
  return name === null ? guess(bytes) : decoderOf(name)(bytes)
}

function decoderOf(name: string): Decode {
  const known = decoders.get(name)
  if (known !== undefined) return known
  const decode = makeDecoder(name)
  decoders.set(name, decode)
  return decode
}

function makeDecoder(name: string): Decode {
  if (name === 'us-ascii') {
    return (bytes) => (isAscii(bytes) ? certain(bytes.toString('latin1')) : guess(bytes))
  }
  if (name === 'iso-2022-jp') return (bytes) => certain(decodeIso2022Jp(bytes))
  if (name === 'iso-2022-kr') return (bytes) => certain(decodeIso2022Kr(bytes))
  if (name === 'hz') return (bytes) => certain(decodeHz(bytes))
  if (name === 'utf-16') return (bytes) => certain(decodeUtf16(bytes))
  if (name === 'utf-8') return decodeUtf8
  if (name === 'utf-7') return (bytes) => certain(decodeUtf7(bytes))
  if (/^utf-(?:16|32)/.test(name)) return (bytes) => certain(iconv.decode(bytes, name))
  return (bytes) => certain(isAscii(bytes) ? bytes.toString('latin1') : decodeBytes(bytes, name))
}

/** The Macintosh charsets that iconv-lite lacks, or has without the euro sign. */
const MACINTOSH = new Map([
  ['macintosh', new TextDecoder('macintosh')],
  ['x-mac-cyrillic', new TextDecoder('x-mac-cyrillic')],
])

function decodeBytes(bytes: Buffer, name: string): string {
  return MACINTOSH.get(name)?.decode(bytes) ?? iconv.decode(bytes, name)
}

function decodeUtf8(bytes: Buffer): DecodedText {
  const text = withoutMark(bytes.toString('utf8'))
  if (isUtf8(bytes) || hasValidSequence(text)) return certain(text)
  return { text: iconv.decode(bytes, WINDOWS1252), guessed: WINDOWS1252 }
}

/** Whether any character beyond ASCII was valid UTF-8: then the other bytes are damaged, and not in another charset. */
function hasValidSequence(lossy: string): boolean {
  return /[^\x00-\x7f\ufffd]/.test(lossy)
}

/** The byte order is that of the byte order mark (RFC 2781, section 4.3), or else guessed from the zero bytes. */
function decodeUtf16(bytes: Buffer): string {
  if (bytes[0] === 0xff && bytes[1] === 0xfe) return iconv.decode(bytes, 'utf-16le')
  if (bytes[0] === 0xfe && bytes[1] === 0xff) return iconv.decode(bytes, 'utf-16be')
  let littleEndian = 0
  for (let at = 0; at < Math.min(bytes.length, 512); at++) {
    if (bytes[at] === 0) littleEndian += at % 2 === 1 ? 1 : -1
  }
  return iconv.decode(bytes, littleEndian > 0 ? 'utf-16le' : 'utf-16be')
}

function guess(bytes: Buffer): DecodedText {
  if (isUtf8(bytes)) return { text: withoutMark(bytes.toString('utf8')), guessed: 'utf-8' }
  return { text: iconv.decode(bytes, WINDOWS1252), guessed: WINDOWS1252 }
}

/** Valid UTF-8 and ISO-2022-JP do not count as guesses. windows-1252 does, because any bytes are valid in it. */
function decodeUndeclared(bytes: Buffer): DecodedText {
  if (hasIso2022(bytes)) return certain(decodeIso2022Jp(bytes))
  const guessed = guess(bytes)
  return guessed.guessed === 'utf-8' ? certain(guessed.text) : guessed
}

/** Whether bytes are ASCII with an escape sequence that begins Japanese text (RFC 1468). */
function hasIso2022(bytes: Buffer): boolean {
  const escape = bytes.indexOf(0x1b)
  if (escape === -1 || !isAscii(bytes)) return false
  return bytes.includes('\x1b$B', escape, 'latin1') || bytes.includes('\x1b$@', escape, 'latin1')
}

function certain(text: string): DecodedText {
  return { text, guessed: null }
}

function withoutMark(text: string): string {
  return text.charCodeAt(0) === 0xfeff ? text.slice(1) : text
}

const PLUS = 0x2b
const MINUS = 0x2d
const NOT_BASE64 = 255
/** The six bits of each byte of the alphabet of base64 (RFC 4648, section 4). */
const BASE64_VALUES = new Uint8Array(256).fill(NOT_BASE64)
const ALPHABET = Buffer.from('ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/')
for (const [value, character] of ALPHABET.entries()) BASE64_VALUES[character] = value

/**
 * Decodes UTF-7 (RFC 2152): UTF-16 in base64, from a plus sign to the first character that is not base64. If this is a
 * minus sign, it is dropped; `+-` is a plus sign. Bytes beyond ASCII, which are invalid there, are read as Latin-1.
 */
function decodeUtf7(bytes: Buffer): string {
  // At most one UTF-16 unit per byte.
  const units = Buffer.allocUnsafe(bytes.length * 2)
  let length = 0
  let isShifted = false
  let isFresh = false
  let bits = 0
  let bitCount = 0
  for (const byte of bytes) {
    const value = isShifted ? (BASE64_VALUES[byte] ?? NOT_BASE64) : NOT_BASE64
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
