import iconv from 'iconv-lite'

const ESCAPE = 0x1b
const SHIFT_OUT = 0x0e
const SHIFT_IN = 0x0f
const LF = 10
const CR = 13

const JAPANESE = new TextDecoder('iso-2022-jp')

/**
 * Decodes ISO-2022-JP (RFC 1468) and JIS X 0212 (RFC 2237), which the Encoding Standard's decoder lacks: EUC-JP has the
 * same characters, with a byte before each, and high bits.
 */
export function decodeIso2022Jp(bytes: Buffer): string {
  if (!bytes.includes('\x1b$(')) return JAPANESE.decode(bytes)
  const text = bytes.toString('latin1').replace(/\x1b\$\((?=[@B])/g, '\x1b$')
  const [first = '', ...others] = text.split('\x1b$(D')
  const pieces = others.map((piece) => {
    const end = piece.search(/[\x1b\r\n]|$/)
    const euc = piece
      .slice(0, end)
      .replace(/../g, (pair) => `\x8f${pair}`)
      .replace(/[!-~]/g, highBit)
    return iconv.decode(Buffer.from(euc, 'latin1'), 'euc-jp') + decodeJapanese(piece.slice(end))
  })
  return decodeJapanese(first) + pieces.join('')
}

function decodeJapanese(text: string): string {
  return JAPANESE.decode(Buffer.from(text, 'latin1'))
}

function highBit(character: string): string {
  return String.fromCharCode(character.charCodeAt(0) | 0x80)
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

function isGraphic(byte: number): boolean {
  return byte > 0x20 && byte < 0x7f
}
