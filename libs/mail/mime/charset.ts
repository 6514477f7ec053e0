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

const WINDOWS1252 = 'windows-1252'

/**
 * Decodes text in its declared charset. Names mean what the Encoding Standard says (ISO-8859-1 and US-ASCII are
 * windows-1252, GB2312 is GBK). Text without a charset is UTF-8 or ISO-2022-JP if the bytes are valid, else
 * windows-1252. Text declared as UTF-8 in which no character beyond ASCII is valid UTF-8 is windows-1252. Never fails:
 * a byte without a character becomes U+FFFD.
 */
export function decodeText(bytes: Buffer, declared: string | null): DecodedText {
  if (declared === null || /^[\s"',;]*$/.test(declared)) return decodeUndeclared(bytes)
  const name = charsetName(declared)
  if (name === 'utf-8') return decodeUtf8(bytes)
  if (name === null || (name === 'us-ascii' && !isAscii(bytes))) return guess(bytes)
  return { text: decodeBytes(bytes, name), guessed: null }
}

/** The Macintosh charsets that iconv-lite lacks, or has without the euro sign. */
const MACINTOSH = new Map([
  ['macintosh', new TextDecoder('macintosh')],
  ['x-mac-cyrillic', new TextDecoder('x-mac-cyrillic')],
])

function decodeBytes(bytes: Buffer, name: string): string {
  if (name === 'iso-2022-jp') return decodeIso2022Jp(bytes)
  if (name === 'iso-2022-kr') return decodeIso2022Kr(bytes)
  if (name === 'hz') return decodeHz(bytes)
  // Without a byte order mark, iconv-lite guesses the order. RFC 2781, section 4.3, names the default.
  if (name === 'utf-16') return iconv.decode(bytes, name, { defaultEncoding: 'utf16be' })
  if (isAscii(bytes) && !name.startsWith('utf-')) return bytes.toString('latin1')
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
