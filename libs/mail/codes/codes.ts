import type { OneTimeCode } from '../message.js'
import { CONFIRMING_WORDS, SIGN_IN_WORDS, STRONG_WORDS, WEAK_WORDS } from './code-words.js'
import { HANDOVER_WORDS } from './instructions.js'
import { textBefore } from './mentions.js'
import { APPOINTMENT_WORDS, APPROVAL_WORDS, PROMOTION_WORDS, RECEIPT_WORDS } from './number-words.js'
import { kindOfSubject, searchableText, type SearchableText } from './searchable-text.js'
import {
  candidatesInContext,
  isExpired,
  isDate,
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
  const kind = kindOfSubject(subject ?? '')
  const parts = [kind.startsWith('reply') ? '' : subject, text, visible].map((part) =>
    searchableText((part ?? '').slice(0, MAX_SEARCHED_LENGTH), kind),
  )
  let topic: Topic | null = null
  const named = new Map<string, OneTimeCode>()
  const unnamed = new Map<string, OneTimeCode>()
  for (const part of parts) {
    for (const candidate of candidatesInContext(part.text)) {
      const { value, inner, evidence } = candidate
      topic ??= topicOf(parts)
      const confidence = confidenceOf(candidate, topic)
      const best = evidence === null ? unnamed : named
      if (confidence < Math.max(MIN_CONFIDENCE, best.get(value)?.confidence ?? 0) || isExpired(candidate))
        continue
      best.set(value, { value, text: part.original(inner.start, inner.end), confidence })
    }
  }
  // Beside a code that words name, a number alone on a line is another one: a postcode, a page.
  return withoutNames([...(named.size > 0 ? named : unnamed).values()])
    .map((code) => ({ ...code, confidence: Math.round(Math.min(code.confidence, 0.99) * 100) / 100 }))
    .sort((one, other) => other.confidence - one.confidence)
    .slice(0, maxCodes)
}

/** Letters beside a code of another length with digits are a word or a name: "ACME: your code is 493201". */
function withoutNames(codes: readonly OneTimeCode[]): OneTimeCode[] {
  const hasDigit = ({ value }: OneTimeCode) => /\d/.test(value)
  const lengths = new Set(codes.filter(hasDigit).map(({ value }) => value.length))
  const isName = (code: OneTimeCode) =>
    !hasDigit(code) && lengths.size > (lengths.has(code.value.length) ? 1 : 0)
  return codes.filter((code) => !isName(code))
}

/** Words that never name the PIN of a meeting or a booking. */
const ONE_TIME = /verif|vérif|otp|one.?time|einmal|log.?in|security|sicherheit|sécurité|seguridad|验证|認証/
const isOneTime = (word: string) => ONE_TIME.test(word)
const TOPICS = new Vocabulary({
  oneTime: STRONG_WORDS.filter(isOneTime),
  confirming: [
    ...STRONG_WORDS.filter((word) => !isOneTime(word)),
    ...WEAK_WORDS,
    ...SIGN_IN_WORDS,
    ...CONFIRMING_WORDS,
  ],
  promotion: PROMOTION_WORDS,
  appointment: APPOINTMENT_WORDS,
  handover: HANDOVER_WORDS,
  receipt: RECEIPT_WORDS,
})
const APPROVALS = new Vocabulary({ approval: APPROVAL_WORDS })

/** What a mail is about: the kinds of words in its first characters. */
type Topic = ReturnType<typeof TOPICS.kindsIn>

function topicOf(parts: readonly SearchableText[]): Topic {
  return TOPICS.kindsIn(lowerCase(parts.map(({ text }) => text.slice(0, MAX_TOPIC_LENGTH)).join('\n')))
}

function confidenceOf(candidate: CandidateInContext, topic: Topic): number {
  const { evidence } = candidate
  if (evidence === null) return confidenceWithoutEvidence(candidate, topic)
  const confidence = confidenceByForm(candidate, evidence)
  if (confidence <= 0) return confidence
  if (evidence.isForHandover && !topic.has('handover')) return 0
  if (topic.has('appointment') && !topic.has('oneTime')) return 0
  if (isPromotionCode(candidate, evidence, topic)) return 0
  return isCardApproval(candidate, topic) ? 0 : confidence
}

/** Digits alone on a line: "493201" in a mail about signing in, or in a language without words in the lists. */
function confidenceWithoutEvidence(
  { isAlone, form, isUnusualForm, value }: CandidateInContext,
  topic: Topic,
): number {
  if (!isAlone || form !== 'digits' || isUnusualForm || isDate(value)) return 0
  if (topic.has('oneTime') || topic.has('confirming')) return value.length >= 6 ? 0.65 : 0.5
  return value.length === 6 ? 0.35 : 0
}

/** Promotion codes are words or short numbers: "enter the code 739 004 at checkout" is a one-time code. */
function isPromotionCode(
  { form, value }: CandidateInContext,
  { isDirect, isStrong }: Evidence,
  topic: Topic,
): boolean {
  const isPersonal = isStrong || (isDirect && form === 'digits' && value.length >= 6)
  return !isPersonal && topic.has('promotion')
}

/** "Auth code 604418" on the receipt of a card payment is not for typing. */
function isCardApproval({ lower, start }: CandidateInContext, topic: Topic): boolean {
  return topic.has('receipt') && APPROVALS.matches(textBefore(lower, start, 60))
}

/** A form that is rare for codes, or frequent for other things, needs more evidence. */
function confidenceByForm(
  { form, isUnusualForm, inner, value, isAlone }: CandidateInContext,
  { confidence, isDirect, isStrong, isNamedByCopula }: Evidence,
): number {
  if (confidence === 0 || (isUnusualForm && !isNamedByCopula)) return 0
  const isClear = isDirect || isAlone
  switch (form) {
    case 'digits':
      if (isDate(value)) return isClear ? confidence - 0.2 : 0
      // Years, house numbers and postcodes also have this length.
      if (!isClear && value.length < 6) return confidence < 0.6 ? 0 : confidence - 0.15
      return value.length === 6 ? confidence + 0.03 : confidence
    case 'capitals-and-digits':
      return isClear ? confidence - 0.03 : 0
    case 'letters-and-digits':
      // Tokens, host names and signatures also have this form.
      return isDirect || (isAlone && isStrong) ? confidence - 0.2 : 0
    case 'uneven-groups':
      return isClear ? confidence - 0.2 : 0
    case 'letters':
      // Headings, buttons and names are often words like these.
      if (inner.end - inner.start > value.length) return isClear ? confidence - 0.15 : 0
      return isNamedByCopula ? confidence - 0.25 : 0
  }
}
