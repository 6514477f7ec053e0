import { INVISIBLE } from '../links/html-links.js'
import { bareUrls } from '../links/links.js'

/** A part of a mail as it is searched for codes. */
export interface SearchableText {
  text: string
  /** The characters of the mail between two positions in `text`. */
  original(start: number, end: number): string
}

/** Replaces characters that are not searched. It is no letter and no digit. */
const BLANK = '\ue000'

/**
 * Prepares a text for the search: converts digits of all scripts and fullwidth characters to ASCII, and all spaces to
 * one kind, removes invisible characters, and blanks out addresses, account numbers and quoted mails.
 */
export function searchableText(original: string, kind: SubjectKind): SearchableText {
  const { text, positions } = withoutInvisible(original)
  const plain = toAscii(text)
  const quoted = kind === 'forward' ? [] : quotedRanges(plain, kind === 'reply')
  const ranges = [...quoted, ...addressRanges(plain)].sort((a, b) => a.start - b.start)
  const pieces: string[] = []
  let done = 0
  for (const { start, end } of ranges) {
    if (end <= done) continue
    const from = Math.max(start, done)
    pieces.push(plain.slice(done, from), BLANK.repeat(end - from))
    done = end
  }
  return {
    text: done === 0 ? plain : pieces.join('') + plain.slice(done),
    original: (start, end) =>
      positions === null
        ? original.slice(start, end)
        : original.slice(positions[start], (positions[end - 1] ?? 0) + 1),
  }
}

/** A text without invisible characters, and the position of each remaining one; null if there are none. */
function withoutInvisible(original: string): { text: string; positions: Uint32Array | null } {
  const text = original.replace(INVISIBLE, '')
  if (text.length === original.length) return { text, positions: null }
  const positions = new Uint32Array(text.length)
  let kept = 0
  let passed = 0
  for (const { 0: removed, index } of [...original.matchAll(INVISIBLE), { 0: '', index: original.length }]) {
    while (passed < index) positions[kept++] = passed++
    passed += removed.length
  }
  return { text, positions }
}

/** The zeros of Arabic, Persian, the scripts of India, Thai, Lao, Burmese and Khmer. Nine digits follow each. */
const ZEROS = Array.from('٠۰०০੦૦୦௦౦೦൦๐໐၀០', (zero) => zero.charCodeAt(0))
const ASCII_CHARACTERS = new Map([
  ...ZEROS.flatMap((zero) =>
    Array.from({ length: 10 }, (_, digit) => [zero + digit, String(digit)] as const),
  ),
  ...Array.from(
    '\u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u202f\u205f\u3000\t',
  ).map((space) => [space.charCodeAt(0), ' '] as const),
])
const NOT_ASCII = new RegExp(`[${String.fromCharCode(...ASCII_CHARACTERS.keys())}０-９Ａ-Ｚａ-ｚ－]`, 'g')

function toAscii(text: string): string {
  return text.replace(NOT_ASCII, (character) => {
    const code = character.charCodeAt(0)
    return ASCII_CHARACTERS.get(code) ?? String.fromCharCode(code - 0xfee0)
  })
}

interface Range {
  start: number
  end: number
}

const rangeOf = ({ index, 0: { length } }: RegExpExecArray): Range => ({ start: index, end: index + length })

// An email address, or a URL without a scheme
const ADDRESS = /[\w.+-]{1,64}@[\w.-]{1,64}|www\.[^\s<>"]+/gi
// ISO 13616: a country, two check digits, and up to 30 characters in groups of four.
const IBAN = /(?<![0-9A-Za-z])[A-Z]{2}\d{2}(?: ?[0-9A-Z]{4}){2,7}(?: ?[0-9A-Z]{1,3})?(?![0-9A-Za-z])/g

/** URLs, email addresses and bank accounts. They contain no codes, and their words say nothing about a code. */
function* addressRanges(text: string): Generator<Range> {
  if (text.includes('://')) yield* bareUrls(text)
  if (/@|www\./i.test(text)) for (const match of text.matchAll(ADDRESS)) yield rangeOf(match)
  for (const match of text.matchAll(IBAN)) if (match[0].length >= 15) yield rangeOf(match)
}

// The names of replies and forwarded mail in subjects
const REPLY_SUBJECT =
  /^\s{0,9}(?:re?|aw|antw|sv|odp|ynt|res|rif|ref|ha|回复|回覆|答复|відп|отв)\s{0,3}(?:\[\d+\])?\s{0,3}[:：]/i
const FORWARD_SUBJECT =
  /^\s{0,9}(?:fwd?|wg|tr|rv|i|enc|doorst|vb|pd|ilt|i̇lt|továbbítás|προωθ|转发|轉寄|転送|전달)\s{0,3}[:：]/i

/** A reply repeats the subject of the original mail. */
export type SubjectKind = 'reply' | 'forward' | 'other'

export function kindOfSubject(subject: string): SubjectKind {
  if (REPLY_SUBJECT.test(subject)) return 'reply'
  return FORWARD_SUBJECT.test(subject) ? 'forward' : 'other'
}

// "On … wrote:" in the languages of common mail programs.
const ATTRIBUTION =
  /(?:wrote|schrieb|a écrit|escribió|escreveu|ha scritto|schreef|skrev|kirjoitti|napisał|napisał\(a\)|napsal|napísal|írta|a scris|έγραψε|yazdı|пише|написал|написала|написав|كتب|כתב|نوشت|เขียนว่า|đã viết|menulis|写道|寫道|のメール|님이 작성)\s{0,2}[:：]$/i
const ORIGINAL_MESSAGE =
  /^-{2,20}\s{0,3}(?:original message|ursprüngliche nachricht|message d'origine|mensaje original|mensagem original|messaggio originale|oorspronkelijk bericht|ursprungligt meddelande|oprindelig meddelelse|opprinnelig melding|alkuperäinen viesti|oryginalna wiadomość|původní zpráva|pôvodná správa|eredeti üzenet|mesaj original|αρχικό μήνυμα|orijinal mesaj|元のメッセージ|원본 메일|原始邮件|原始郵件|исходное сообщение)/i
// A header field of a forwarded mail: "> From: App <app@app.example>"
const FORWARDED_FIELD = /^>\s{0,3}\*?[^\s:：@]{1,20}(?: [^\s:：@]{1,12})?\s?[:：]\*?\s.{0,200}@/

/**
 * In a reply, lines that begin with `>`, and everything after "On … wrote:" or "Original Message". In other mail, lines
 * that begin with `>` below text that its sender wrote. A forwarded mail is not quoted.
 */
function* quotedRanges(text: string, isReply: boolean): Generator<Range> {
  let hasOwnText = isReply
  for (let start = 0; start < text.length;) {
    const lineFeed = text.indexOf('\n', start)
    const end = lineFeed === -1 ? text.length : lineFeed
    // Longer lines are no markers.
    const line = text.slice(start, end - start < 300 ? end : start + 1).trim()
    if (line.startsWith('>')) {
      if (!hasOwnText || (!isReply && FORWARDED_FIELD.test(line))) return
      yield { start, end }
    } else if (line !== '') {
      if (isReply && (ORIGINAL_MESSAGE.test(line) || ATTRIBUTION.test(line))) {
        yield { start: end, end: text.length }
        return
      }
      hasOwnText = true
    }
    start = end + 1
  }
}
