import { isAscii, isUtf8 } from 'node:buffer'
import iconv from 'iconv-lite'
import { decodeIso2022Jp, decodeIso2022Kr } from './iso-2022.js'

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
const US_ASCII = new Set('us-ascii ascii ansi_x3.4-1968 iso646-us iso_646.irv:1991 us 7bit'.split(' '))

/** Names that occur in mail and are missing in the Encoding Standard. */
const ALIASES = new Map([
  ['cp932', 'shift_jis'],
  ['cp936', 'gbk'],
  ['cp949', 'euc-kr'],
  ['cp950', 'big5'],
  ['unicode-1-1-utf-7', 'utf-7'],
  ['utf7', 'utf-7'],
])

/** Charsets of mail that are missing in the Encoding Standard. */
const BEYOND_STANDARD =
  /^(?:utf-7|utf-?32(?:le|be)?|(?:cp|ibm)-?\d{2,5}|viscii|tcvn|armscii-?8|koi8-(?:t|ru))$/

const decodes = new Map<string, Decode>()

/**
 * Decodes text in its declared charset. Names mean what the Encoding Standard says (ISO-8859-1 and US-ASCII are
 * windows-1252, GB2312 is GBK). Text without a charset is UTF-8 or ISO-2022-JP if the bytes are valid, else
 * windows-1252. Text declared as UTF-8 in which no character beyond ASCII is valid UTF-8 is windows-1252. Never fails:
 * a byte without a character becomes U+FFFD.
 */
export function decodeText(bytes: Buffer, declared: string | null): DecodedText {
  const label = normalLabel(declared)
  if (label === '') return decodeUndeclared(bytes)
  return (decodeFor(label) ?? guess)(bytes)
}

/** Whether text in this charset can be decoded. */
export function isKnownCharset(label: string): boolean {
  return decodeFor(normalLabel(label)) !== null
}

/** The standard name of a charset, which is the same for all of its names; null for an unknown one. */
export function charsetName(label: string): string | null {
  return standardName(normalLabel(label))
}

function normalLabel(declared: string | null): string {
  if (declared === null) return ''
  const label = declared
    .slice(0, 80)
    .toLowerCase()
    .replace(/[\s"',;]/g, '')
    .replace(/^win(?:dows)?-?(?=\d)/, 'windows-')
    .replace(/^latin-(?=\d)/, 'latin')
  return ALIASES.get(label) ?? label
}

/** Null if the charset is unknown. */
function decodeFor(label: string): Decode | null {
  const known = decodes.get(label)
  if (known !== undefined) return known
  const decode = makeDecode(label)
  // Only known charsets are cached: senders can make up any number of unknown ones.
  if (decode !== null) decodes.set(label, decode)
  return decode
}

function makeDecode(label: string): Decode | null {
  if (US_ASCII.has(label))
    return (bytes) => (isAscii(bytes) ? certain(bytes.toString('latin1')) : guess(bytes))
  if (/^iso-2022-jp/.test(label)) return (bytes) => certain(decodeIso2022Jp(bytes))
  if (label === 'iso-2022-kr') return (bytes) => certain(decodeIso2022Kr(bytes))
  if (label === 'utf-16') return (bytes) => certain(decodeUtf16(bytes))
  const name = standardName(label)
  if (name === null) return null
  if (name === 'utf-8') return decodeUtf8
  if (name === 'utf-7') return (bytes) => certain(decodeUtf7(bytes))
  if (/^utf-(?:16|32)/.test(name)) return (bytes) => certain(iconv.decode(bytes, name))
  return (bytes) => certain(isAscii(bytes) ? bytes.toString('latin1') : decodeBytes(bytes, name))
}

function standardName(label: string): string | null {
  if (BEYOND_STANDARD.test(label)) return iconv.encodingExists(label) ? label : null
  if (/^iso-2022-(?:jp|kr)/.test(label)) return label
  try {
    const name = new TextDecoder(label).encoding.replace(/-(?:i|e)$/, '')
    return name === 'x-user-defined' ? null : name
  } catch {
    return null
  }
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
