import iconv from 'iconv-lite'
import { replaceEach } from './transfer-encodings.js'

const ESCAPE = 0x1b
const SHIFT_OUT = 0x0e
const SHIFT_IN = 0x0f
const LF = 10
const CR = 13
const SINGLE_SHIFT_2 = 0x8e
const SINGLE_SHIFT_3 = 0x8f

type CharacterSet = 'ascii' | 'roman' | 'kana' | 'double' | 'supplementary'

/** The character set of each escape sequence: RFC 1468, RFC 2237 (JIS X 0212), JIS X 0202 (half-width katakana). */
const ESCAPES = new Map<string, CharacterSet>([
  ['(B', 'ascii'],
  ['(J', 'roman'],
  ['(H', 'roman'],
  ['(I', 'kana'],
  ['$@', 'double'],
  ['$B', 'double'],
  ['$(@', 'double'],
  ['$(B', 'double'],
  ['$(D', 'supplementary'],
])

/**
 * Decodes ISO-2022-JP and its extensions by converting it to EUC-JP, which numbers the same characters differently.
 * Each line begins in ASCII (RFC 1468), even if the previous line did not switch back. Half-width katakana may be
 * 8-bit bytes.
 */
export function decodeIso2022Jp(bytes: Buffer): string {
  const euc = Buffer.allocUnsafe(bytes.length * 2)
  let length = 0
  let set: CharacterSet = 'ascii'
  let hasRoman = false
  for (let at = 0; at < bytes.length; at++) {
    const byte = bytes[at] ?? 0
    if (byte === ESCAPE) {
      const escape = escapeAt(bytes, at + 1)
      if (escape !== null) {
        set = escape.set
        at += escape.length
        continue
      }
    }
    if (byte === LF || byte === CR) set = 'ascii'
    const next = bytes[at + 1] ?? 0
    if (byte === SHIFT_OUT || byte === SHIFT_IN) continue
    if (isKana(byte, set)) {
      euc[length++] = SINGLE_SHIFT_2
      euc[length++] = byte | 0x80
    } else if ((set === 'double' || set === 'supplementary') && isGraphic(byte) && isGraphic(next)) {
      if (set === 'supplementary') euc[length++] = SINGLE_SHIFT_3
      euc[length++] = byte | 0x80
      euc[length++] = next | 0x80
      at++
    } else if (set === 'roman' && (byte === 0x5c || byte === 0x7e)) {
      // EUC-JP has no yen sign and no overline. They are marked by SO and SI, which were removed above.
      euc[length++] = byte === 0x5c ? SHIFT_OUT : SHIFT_IN
      hasRoman = true
    } else euc[length++] = byte
  }
  const text = iconv.decode(euc.subarray(0, length), 'euc-jp')
  return hasRoman ? replaceEach(replaceEach(text, '\x0e', '¥'), '\x0f', '‾') : text
}

function escapeAt(bytes: Buffer, at: number): { set: CharacterSet; length: number } | null {
  for (const length of [2, 3]) {
    const set = ESCAPES.get(bytes.toString('latin1', at, at + length))
    if (set !== undefined) return { set, length }
  }
  return null
}

function isGraphic(byte: number): boolean {
  return byte > 0x20 && byte < 0x7f
}

function isKana(byte: number, set: CharacterSet): boolean {
  return (byte >= 0xa1 && byte <= 0xdf) || (set === 'kana' && byte >= 0x21 && byte <= 0x5f)
}

/** Decodes ISO-2022-KR (RFC 1557): between SO and SI, it is EUC-KR without the high bits. */
export function decodeIso2022Kr(bytes: Buffer): string {
  const euc = Buffer.allocUnsafe(bytes.length)
  let length = 0
  let isShifted = false
  for (let at = 0; at < bytes.length; at++) {
    const byte = bytes[at] ?? 0
    if (byte === ESCAPE && bytes.toString('latin1', at + 1, at + 4) === '$)C') at += 3
    else if (byte === SHIFT_OUT || byte === SHIFT_IN) isShifted = byte === SHIFT_OUT
    else {
      if (byte === LF) isShifted = false
      euc[length++] = isShifted && byte > 0x20 ? byte | 0x80 : byte
    }
  }
  return iconv.decode(euc.subarray(0, length), 'euc-kr')
}

const TILDE = 0x7e

/**
 * Decodes HZ (RFC 1843), GB 2312 in 7 bits: `~{` begins and `~}` ends Chinese text, `~~` is a tilde, and `~` joins
 * lines. Each line begins in ASCII, even if the previous line did not switch back.
 */
export function decodeHz(bytes: Buffer): string {
  const gbk = Buffer.allocUnsafe(bytes.length)
  let length = 0
  let isChinese = false
  for (let at = 0; at < bytes.length; at++) {
    const byte = bytes[at] ?? 0
    const next = bytes[at + 1] ?? 0
    if (byte === LF || byte === CR) isChinese = false
    if (byte === TILDE && (next === (isChinese ? 0x7d : 0x7b) || next === TILDE || next === LF)) {
      if (next === TILDE) gbk[length++] = TILDE
      else if (next !== LF) isChinese = !isChinese
      at++
    } else if (isChinese && isGraphic(byte) && isGraphic(next)) {
      gbk[length++] = byte | 0x80
      gbk[length++] = next | 0x80
      at++
    } else gbk[length++] = byte
  }
  return iconv.decode(gbk.subarray(0, length), 'gbk')
}
