import { charsetName } from './charset-names.js'
import { decodeText } from './charset.js'

/** The beginning of an encoded word, `=?charset*language?encoding?` (RFC 2047, section 2; RFC 2231, section 5). */
const OPENING = /=\?([^\s?()<>@,;:"/[\]=]{1,100})\?([bq])\?/iy
const BASE64_TEXT = /^[A-Za-z0-9+/=\s]*$/
const Q_ESCAPE = /_|=([0-9a-f]{2})/gi
/** In a charset with shift states, each word begins in the initial state (RFC 1468), so it is decoded alone. */
const STATEFUL = /^(?:iso-2022|utf-7|utf-16|hz)/
const RAW_BYTE = /[\x80-\xff]/

interface EncodedWord {
  charset: string
  isBase64: boolean
  content: string
  start: number
  end: number
}

/**
 * Decodes the encoded words of a text (RFC 2047), including words within other words, within quoted strings, and
 * without spaces between them, which are frequent. White space between two words is dropped. Words of one charset are
 * decoded together, since many senders cut characters in two. Invalid words and invalid base64 are left unchanged
 * (section 6.3). Takes linear time.
 */
export function decodeWords(text: string): string {
  let decoded = ''
  let done = 0
  let group: EncodedWord[] = []
  let groupCharset: string | null = null
  for (const word of wordsIn(text)) {
    const between = text.slice(done, word.start)
    const [first] = group
    const isNext = first !== undefined && between.trim() === ''
    const isSame = word.charset === first?.charset || charsetName(word.charset) === groupCharset
    if (!isNext || !isSame || STATEFUL.test(groupCharset ?? '')) {
      decoded += decodeGroup(group)
      group = []
      groupCharset = charsetName(word.charset)
    }
    if (!isNext) decoded += between
    group.push(word)
    done = word.end
  }
  return decoded + decodeGroup(group) + text.slice(done)
}

function decodeGroup(words: EncodedWord[]): string {
  const [first] = words
  return first === undefined ? '' : decodeText(bytesOf(words), first.charset).text
}

/**
 * Replaces raw 8-bit bytes inside encoded words with Q escapes, so that they are decoded in the charset of their word
 * and not in that of the surrounding text. Takes and returns one character per byte. Takes linear time.
 */
export function escapeRawBytes(field: string): string {
  let escaped = ''
  let done = 0
  for (const { content, end } of wordsIn(field)) {
    if (!RAW_BYTE.test(content)) continue
    const start = end - content.length - 2
    // `?=` would end the word, so question marks are escaped as well.
    escaped += field.slice(done, start) + content.replace(/[?\x80-\xff]/g, escapeByte)
    done = start + content.length
  }
  return escaped + field.slice(done)
}

function escapeByte(byte: string): string {
  return `=${byte.charCodeAt(0).toString(16)}`
}

function* wordsIn(text: string): Generator<EncodedWord> {
  /** The position of the first `?=` after the last opening. */
  let close = -2
  for (let start = text.indexOf('=?'), end; start !== -1; start = text.indexOf('=?', end)) {
    end = start + 2
    OPENING.lastIndex = start
    const [head, charset = '', encoding] = OPENING.exec(text) ?? []
    if (head === undefined) continue

    const begin = start + head.length
    if (close < begin) close = text.indexOf('?=', begin)
    if (close === -1) return
    const content = text.slice(begin, close)
    const isBase64 = encoding?.toLowerCase() === 'b'
    // If the next word begins inside, this one is never closed.
    if (content.includes('=?') || (isBase64 && !BASE64_TEXT.test(content))) continue

    end = close + 2
    yield { charset: charset.replace(/\*.*$/, ''), isBase64, content, start, end }
  }
}

/** Base64 is joined before it is decoded, because some senders cut it at any position. */
function bytesOf(words: EncodedWord[]): Buffer {
  const decoded: Buffer[] = []
  let base64 = ''
  for (const { isBase64, content } of words) {
    if (isBase64) {
      base64 += content
      continue
    }
    if (base64 !== '') decoded.push(decodeB(base64))
    base64 = ''
    // RFC 2047, section 4.2.
    decoded.push(unescapeBytes(content, Q_ESCAPE))
  }
  if (base64 !== '') decoded.push(decodeB(base64))
  return Buffer.concat(decoded)
}

/** Padding in the middle ends a piece, but not the content. */
function decodeB(text: string): Buffer {
  const pieces = text.split('=').filter((piece) => piece !== '')
  return Buffer.concat(pieces.map((piece) => Buffer.from(piece, 'base64')))
}

/**
 * The bytes of a text whose escapes have the group of two hexadecimal digits; an escape without it is a space.
 * Characters that are not part of an escape are kept.
 */
export function unescapeBytes(text: string, escape: RegExp): Buffer {
  const unescaped = Buffer.from(text)
    .toString('latin1')
    .replace(escape, (_, digits?: string) =>
      digits === undefined ? ' ' : String.fromCharCode(parseInt(digits, 16)),
    )
  return Buffer.from(unescaped, 'latin1')
}
