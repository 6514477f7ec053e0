import { bareUrls } from '../links/links.js'
import type { OneTimeCode } from '../message.js'
import { CONFIRMING_WORDS, SIGN_IN_WORDS, STRONG_WORDS, WEAK_WORDS } from './code-words.js'
import { HANDOVER_WORDS } from './instructions.js'
import { textBefore } from './mentions.js'
import { APPOINTMENT_WORDS, APPROVAL_WORDS, PROMOTION_WORDS, RECEIPT_WORDS } from './number-words.js'
import {
  candidatesInContext,
  isYear,
  lowerCase,
  type CandidateInContext,
  type Evidence,
} from './surroundings.js'
import { Vocabulary } from './vocabulary.js'

/*
 * Finds one-time codes in a mail: what has the form of a code (`candidates.ts`), and is named as one by the words
 * around it (`surroundings.ts`), unless the mail is about something else.
 */

/** Characters of each of subject, text and visible text that are searched for codes. */
const MAX_SEARCHED_LENGTH = 262_144
/** Characters of each that decide what the mail is about. */
const MAX_TOPIC_LENGTH = 4_096
const MIN_CONFIDENCE = 0.3

/** The one-time codes of a mail, the most likely one first. `visible` is the visible text of its HTML. */
export function findCodes(
  subject: string | null,
  text: string | null,
  visible: string | null,
  maxCodes: number,
): OneTimeCode[] {
  const isReply = subject !== null && isReplySubject(subject)
  const originals = [isReply ? '' : subject, text, visible].map((part) =>
    (part ?? '').slice(0, MAX_SEARCHED_LENGTH),
  )
  const searched = originals.map((part) => searchableText(part, isReply))
  const topic = new Topic(searched)
  const best = new Map<string, OneTimeCode>()
  for (const [index, part] of searched.entries()) {
    for (const candidate of candidatesInContext(part)) {
      const { value, start, end } = candidate
      const confidence = confidenceOf(candidate, topic)
      if (confidence < Math.max(MIN_CONFIDENCE, best.get(value)?.confidence ?? 0)) continue
      best.set(value, { value, text: originals[index]?.slice(start, end) ?? '', confidence })
    }
  }
  return [...best.values()]
    .map((code) => ({ ...code, confidence: Math.round(Math.min(code.confidence, 0.99) * 100) / 100 }))
    .sort((one, other) => other.confidence - one.confidence)
    .slice(0, maxCodes)
}

const TOPICS = new Vocabulary({
  code: STRONG_WORDS,
  confirming: [...WEAK_WORDS, ...SIGN_IN_WORDS, ...CONFIRMING_WORDS],
  promotion: PROMOTION_WORDS,
  appointment: APPOINTMENT_WORDS,
})
const RECEIPTS = new Vocabulary({ receipt: RECEIPT_WORDS })
const HANDOVERS = new Vocabulary({ handover: HANDOVER_WORDS })
const APPROVALS = new Vocabulary({ approval: APPROVAL_WORDS })

/** The subject matter of a mail. Computed only for mails with candidates. */
class Topic {
  private lowerText: string | null = null
  private kinds: ReturnType<typeof TOPICS.kindsIn> | null = null

  constructor(private readonly parts: readonly string[]) {}

  has(kind: 'code' | 'confirming' | 'promotion' | 'appointment'): boolean {
    return (this.kinds ??= TOPICS.kindsIn(this.text)).has(kind)
  }

  get text(): string {
    return (this.lowerText ??= lowerCase(
      this.parts.map((part) => part.slice(0, MAX_TOPIC_LENGTH)).join('\n'),
    ))
  }
}

function confidenceOf(candidate: CandidateInContext, topic: Topic): number {
  const { evidence } = candidate
  if (evidence === null) return confidenceWithoutEvidence(candidate, topic)
  const confidence = confidenceByForm(candidate, evidence)
  if (confidence <= 0) return confidence
  if (evidence.isForHandover && !HANDOVERS.matches(topic.text)) return 0
  if (topic.has('appointment') || isPromotionCode(candidate, evidence, topic)) return 0
  return isCardApproval(candidate, topic) ? 0 : confidence
}

/** Digits alone on a line: "493201" in a mail about signing in, or in a language without words in the lists. */
function confidenceWithoutEvidence({ isAlone, form, value }: CandidateInContext, topic: Topic): number {
  if (!isAlone || form !== 'digits' || isYear(value)) return 0
  if (topic.has('code') || topic.has('confirming')) return value.length >= 6 ? 0.65 : 0.5
  return value.length === 6 ? 0.35 : 0
}

/** Promotion codes are words or short numbers: "enter the code 739 004 at checkout" is a one-time code. */
function isPromotionCode(
  { form, value }: CandidateInContext,
  { isDirect, isStrong }: Evidence,
  topic: Topic,
): boolean {
  const isPersonal = isStrong || (isDirect && form === 'digits' && value.length >= 6)
  return !isPersonal && topic.has('promotion') && !topic.has('code')
}

/** "Auth code 604418" on the receipt of a card payment is not for typing. */
function isCardApproval({ lower, start }: CandidateInContext, topic: Topic): boolean {
  return APPROVALS.matches(textBefore(lower, start, 60)) && RECEIPTS.matches(topic.text)
}

/** A form that is rare for codes, or frequent for other things, needs more evidence. */
function confidenceByForm(
  { form, start, end, value, isAlone }: CandidateInContext,
  { confidence, isDirect, isStrong }: Evidence,
): number {
  if (confidence === 0) return 0
  const isClear = isDirect || isAlone
  switch (form) {
    case 'digits':
      if (isYear(value) || isCalendarDate(value)) return isClear ? confidence - 0.2 : 0
      // Years, house numbers and postcodes also have this length.
      if (!isClear && value.length < 6) return confidence < 0.6 ? 0 : confidence - 0.15
      return value.length === 6 ? confidence + 0.03 : confidence
    case 'capitals-and-digits':
      return isClear ? confidence - 0.03 : 0
    case 'letters-and-digits':
      // Tokens, host names and signatures also have this form.
      return isDirect || (isAlone && isStrong) ? confidence - 0.2 : 0
    case 'uneven-groups':
      return (isDirect && isStrong) || isAlone ? confidence - 0.2 : 0
    case 'capitals':
      // Headings and buttons often have words in capitals.
      if (!isClear || !isUnlikeWord(value)) return 0
      return end - start > value.length ? confidence - 0.15 : confidence - 0.25
  }
}

function isCalendarDate(value: string): boolean {
  return /^(?:19|20)\d\d(?:0[1-9]|1[0-2])(?:0[1-9]|[12]\d|3[01])$/.test(value)
}

function isUnlikeWord(value: string): boolean {
  return !/[AEIOUY]/.test(value) || /[^AEIOUY]{4}/.test(value)
}

/** Replaces characters that are not searched. It is no letter and no digit. */
const BLANK = '\ue000'

/**
 * Prepares a text for the search: converts digits of all scripts and fullwidth characters to ASCII, and blanks out
 * addresses, account numbers and quoted mails. Positions are the same as in `text`.
 */
function searchableText(text: string, isReply: boolean): string {
  const plain = toAscii(text)
  const ranges = [...quotedRanges(plain, isReply), ...addressRanges(plain)].sort((a, b) => a.start - b.start)
  const pieces: string[] = []
  let done = 0
  for (const { start, end } of ranges) {
    if (end <= done) continue
    const from = Math.max(start, done)
    pieces.push(plain.slice(done, from), BLANK.repeat(end - from))
    done = end
  }
  return done === 0 ? plain : pieces.join('') + plain.slice(done)
}

/** The zeros of Arabic, Persian, the scripts of India, Thai, Lao, Burmese and Khmer. Nine digits follow each. */
const ZEROS = Array.from('٠۰०০੦૦୦௦౦೦൦๐໐၀០', (zero) => zero.charCodeAt(0))
const ASCII_DIGITS = new Map(
  ZEROS.flatMap((zero) => Array.from({ length: 10 }, (_, digit) => [zero + digit, String(digit)])),
)
const NOT_ASCII = new RegExp(`[${String.fromCharCode(...ASCII_DIGITS.keys())}０-９Ａ-Ｚａ-ｚ－]`, 'g')

function toAscii(text: string): string {
  return text.replace(NOT_ASCII, (character) => {
    const code = character.charCodeAt(0)
    return ASCII_DIGITS.get(code) ?? String.fromCharCode(code - 0xfee0)
  })
}

interface Range {
  start: number
  end: number
}

const rangeOf = ({ index, 0: { length } }: RegExpExecArray): Range => ({ start: index, end: index + length })

// ISO 13616: a country, two check digits, and up to 30 characters in groups of four.
const IBAN = /(?<![0-9A-Za-z])[A-Z]{2}\d{2}(?: ?[0-9A-Z]{4}){2,7}(?: ?[0-9A-Z]{1,3})?(?![0-9A-Za-z])/g

/** URLs, email addresses and bank accounts. They contain no codes, and their words say nothing about a code. */
function* addressRanges(text: string): Generator<Range> {
  if (text.includes('://')) yield* bareUrls(text)
  if (text.includes('www.')) for (const match of text.matchAll(/www\.[^\s<>"]+/gi)) yield rangeOf(match)
  for (const match of text.matchAll(IBAN)) if (match[0].length >= 15) yield rangeOf(match)
  for (let at = text.indexOf('@'); at !== -1; at = text.indexOf('@', at + 1)) {
    let start = at
    while (at - start < MAX_ADDRESS_SIDE && isAddressCharacter(text.charCodeAt(start - 1))) start--
    let end = at + 1
    while (end - at < MAX_ADDRESS_SIDE && isAddressCharacter(text.charCodeAt(end))) end++
    if (start < at) yield { start, end }
  }
}

const MAX_ADDRESS_SIDE = 64
const ADDRESS_CHARACTERS = new Set(Array.from('.+-_', (character) => character.charCodeAt(0)))

function isAddressCharacter(code: number): boolean {
  const isDigit = code >= 0x30 && code <= 0x39
  const letter = code | 0x20
  return isDigit || (code < 0x80 && letter >= 0x61 && letter <= 0x7a) || ADDRESS_CHARACTERS.has(code)
}

const REPLY_SUBJECT =
  /^\s{0,9}(?:re|aw|antw|sv|vs|odp|ynt|res|rif|ref|ha|回复|回覆|答复|відп|отв)\s{0,3}(?:\[\d+\])?\s{0,3}[:：]/i

/** Whether a subject is that of a reply, which repeats the subject of the original mail. */
function isReplySubject(subject: string): boolean {
  return REPLY_SUBJECT.test(subject)
}

// "On … wrote:" in the languages of common mail programs.
const ATTRIBUTION =
  /(?:wrote|schrieb|a écrit|escribió|escreveu|ha scritto|schreef|skrev|kirjoitti|napisał|napisał\(a\)|napsal|napísal|írta|a scris|έγραψε|yazdı|пише|написал|написала|написав|كتب|כתב|نوشت|เขียนว่า|đã viết|menulis|写道|寫道|のメール|님이 작성)\s{0,2}[:：]$/i
const ORIGINAL_MESSAGE =
  /^-{2,20}\s{0,3}(?:original message|ursprüngliche nachricht|message d'origine|mensaje original|mensagem original|messaggio originale|oorspronkelijk bericht|ursprungligt meddelande|原始邮件|原始郵件|исходное сообщение)/i
const FORWARDED = /^(?:-{2,20}\s{0,3}(?:forwarded|weitergeleitet)|begin forwarded)/i

/**
 * Lines that begin with `>`, and in a reply everything after "On … wrote:" or "Original Message". Forwarded mail does
 * not count.
 */
function* quotedRanges(text: string, isReply: boolean): Generator<Range> {
  for (let start = 0; start < text.length;) {
    const lineFeed = text.indexOf('\n', start)
    const end = lineFeed === -1 ? text.length : lineFeed
    if (text.charAt(start) === '>') yield { start, end }
    else if (end - start < 300) {
      const line = text.slice(start, end).trim()
      if (FORWARDED.test(line)) return
      if (isReply && (ORIGINAL_MESSAGE.test(line) || (/\d|@/.test(line) && ATTRIBUTION.test(line)))) {
        yield { start: end, end: text.length }
        return
      }
    }
    start = end + 1
  }
}
