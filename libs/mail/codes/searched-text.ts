import { bareUrls } from '../links/links.js'

/** Stands in for what is not searched; neither letter nor digit. */
const blank = '\ue000'

/**
 * A text as it is searched for codes: digits of all scripts and fullwidth characters as ASCII; addresses, account
 * numbers and what the mail quotes blanked out. Every position stays as it is in `text`.
 */
export function searchedText(text: string, isReply: boolean): string {
  const plain = toAscii(text)
  const ranges = [...quotedRanges(plain, isReply), ...addresses(plain)].sort((a, b) => a.start - b.start)
  const pieces: string[] = []
  let done = 0
  for (const { start, end } of ranges) {
    if (end <= done) continue
    const from = Math.max(start, done)
    pieces.push(plain.slice(done, from), blank.repeat(end - from))
    done = end
  }
  return done === 0 ? plain : pieces.join('') + plain.slice(done)
}

/** The zeros of Arabic, Persian, the scripts of India, Thai, Lao, Burmese and Khmer; nine digits follow each. */
const zeros = Array.from('٠۰०০੦૦୦௦౦೦൦๐໐၀០', (zero) => zero.charCodeAt(0))
const asciiDigits = new Map(
  zeros.flatMap((zero) => Array.from({ length: 10 }, (_, digit) => [zero + digit, String(digit)])),
)
const notAscii = new RegExp(`[${String.fromCharCode(...asciiDigits.keys())}０-９Ａ-Ｚａ-ｚ－]`, 'g')

function toAscii(text: string): string {
  return text.replace(notAscii, (character) => {
    const code = character.charCodeAt(0)
    return asciiDigits.get(code) ?? String.fromCharCode(code - 0xfee0)
  })
}

interface Range {
  start: number
  end: number
}

const rangeOf = ({ index, 0: { length } }: RegExpExecArray): Range => ({ start: index, end: index + length })

// ISO 13616: a country, two check digits, and up to 30 characters in fours.
const iban = /(?<![0-9A-Za-z])[A-Z]{2}\d{2}(?: ?[0-9A-Z]{4}){2,7}(?: ?[0-9A-Z]{1,3})?(?![0-9A-Za-z])/g

/** URLs, mailboxes and bank accounts. No code stands there, and their words are none of the mail's own. */
function* addresses(text: string): Generator<Range> {
  if (text.includes('://')) yield* bareUrls(text)
  if (text.includes('www.')) for (const match of text.matchAll(/www\.[^\s<>"]+/gi)) yield rangeOf(match)
  for (const match of text.matchAll(iban)) if (match[0].length >= 15) yield rangeOf(match)
  for (let at = text.indexOf('@'); at !== -1; at = text.indexOf('@', at + 1)) {
    let start = at
    while (at - start < maxMailboxSide && isMailboxCharacter(text.charCodeAt(start - 1))) start--
    let end = at + 1
    while (end - at < maxMailboxSide && isMailboxCharacter(text.charCodeAt(end))) end++
    if (start < at) yield { start, end }
  }
}

const maxMailboxSide = 64
const mailboxCharacters = new Set(Array.from('.+-_', (character) => character.charCodeAt(0)))

function isMailboxCharacter(code: number): boolean {
  const isDigit = code >= 0x30 && code <= 0x39
  const letter = code | 0x20
  return isDigit || (code < 0x80 && letter >= 0x61 && letter <= 0x7a) || mailboxCharacters.has(code)
}

const replySubject =
  /^\s{0,9}(?:re|aw|antw|sv|vs|odp|ynt|res|rif|ref|ha|回复|回覆|答复|відп|отв)\s{0,3}(?:\[\d+\])?\s{0,3}[:：]/i

/** Whether a subject is that of a reply, which repeats the mail that it answers. */
export function isReplySubject(subject: string): boolean {
  return replySubject.test(subject)
}

// "On … wrote:" in the languages of the common mail programs.
const attribution =
  /(?:wrote|schrieb|a écrit|escribió|escreveu|ha scritto|schreef|skrev|kirjoitti|napisał|napisał\(a\)|napsal|napísal|írta|a scris|έγραψε|yazdı|пише|написал|написала|написав|كتب|כתב|نوشت|เขียนว่า|đã viết|menulis|写道|寫道|のメール|님이 작성)\s{0,2}[:：]$/i
const originalMessage =
  /^-{2,20}\s{0,3}(?:original message|ursprüngliche nachricht|message d'origine|mensaje original|mensagem original|messaggio originale|oorspronkelijk bericht|ursprungligt meddelande|原始邮件|原始郵件|исходное сообщение)/i
const forwarded = /^(?:-{2,20}\s{0,3}(?:forwarded|weitergeleitet)|begin forwarded)/i

/** Lines behind `>`, and in a reply all behind "On … wrote:" or "Original Message". A forwarded mail is not quoted. */
function* quotedRanges(text: string, isReply: boolean): Generator<Range> {
  for (let start = 0; start < text.length;) {
    const lineFeed = text.indexOf('\n', start)
    const end = lineFeed === -1 ? text.length : lineFeed
    if (text.charAt(start) === '>') yield { start, end }
    else if (end - start < 300) {
      const line = text.slice(start, end).trim()
      if (forwarded.test(line)) return
      if (isReply && (originalMessage.test(line) || (/\d|@/.test(line) && attribution.test(line)))) {
        yield { start: end, end: text.length }
        return
      }
    }
    start = end + 1
  }
}
