import iconv from 'iconv-lite'

const ESCAPE = 0x1b
const SHIFT_OUT = 0x0e
const SHIFT_IN = 0x0f
const LF = 10
const CR = 13

type CharacterSet = 'ascii' | 'roman' | 'kana' | 'double' | 'supplementary'

/** What an escape sequence switches to: RFC 1468, RFC 2237 for JIS X 0212, JIS X 0202 for half-width katakana. */
const escapes = new Map<string, CharacterSet>([
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
 * Decodes ISO-2022-JP and its extensions. Each line begins in ASCII (RFC 1468), whatever the one before forgot.
 * Runs of two-byte characters are read as EUC-JP, the same table under another numbering.
 */
export function decodeIso2022Jp(bytes: Buffer): string {
  let text = ''
  let set: CharacterSet = 'ascii'
  let start = 0
  for (let at = 0; at <= bytes.length; at++) {
    const byte = bytes[at]
    if (byte !== undefined && byte !== ESCAPE && byte !== LF && byte !== CR) continue
    if (at > start) text += decodeRun(bytes.subarray(start, at), set)
    start = at
    if (byte === ESCAPE) {
      const next = escapeAt(bytes, at + 1)
      if (next !== null) {
        set = next.set
        start = at + 1 + next.length
        at = start - 1
      }
    } else set = 'ascii'
  }
  return text
}

function escapeAt(bytes: Buffer, at: number): { set: CharacterSet; length: number } | null {
  for (const length of [2, 3]) {
    const set = escapes.get(bytes.toString('latin1', at, at + length))
    if (set !== undefined) return { set, length }
  }
  return null
}

function decodeRun(run: Buffer, set: CharacterSet): string {
  if (set === 'ascii') return run.toString('latin1').replace(/[\xa1-\xdf]/g, halfWidthOfJis8)
  if (set === 'roman') return run.toString('latin1').replaceAll('\\', '¥').replaceAll('~', '‾')
  if (set === 'kana') return run.toString('latin1').replace(/[!-_\xa1-\xdf]/g, halfWidthOfJis8)
  return iconv.decode(asEuc(run, set === 'supplementary'), 'euc-jp')
}

function halfWidthOfJis8(character: string): string {
  return String.fromCharCode(0xff61 + ((character.charCodeAt(0) | 0x80) - 0xa1))
}

/** Pairs of 7-bit bytes with their high bits set, those of JIS X 0212 behind 0x8F; anything else as it is. */
function asEuc(run: Buffer, isSupplementary: boolean): Buffer {
  const euc = Buffer.allocUnsafe(run.length * 2)
  let length = 0
  for (let at = 0; at < run.length; at++) {
    const first = run[at] ?? 0
    const second = run[at + 1] ?? 0
    if (first < 0x21 || first > 0x7e || second < 0x21 || second > 0x7e) {
      euc[length++] = first
      continue
    }
    if (isSupplementary) euc[length++] = 0x8f
    euc[length++] = first | 0x80
    euc[length++] = second | 0x80
    at++
  }
  return euc.subarray(0, length)
}

/** Decodes ISO-2022-KR (RFC 1557): Korean between SO and SI, which is EUC-KR without its high bits. */
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
