import type { OneTimeCode } from '../message.js'
import { confirmingWords, signInWords, strongWords, weakWords } from './code-words.js'
import { handoverWords } from './instructions.js'
import { appointmentWords, approvalWords, promotionWords, receiptWords } from './number-words.js'
import { isReplySubject, searchedText } from './searched-text.js'
import { isYear, lowerCase, placesIn, type Evidence, type Place } from './surroundings.js'
import { Vocabulary } from './vocabulary.js'

/** Characters of each of subject, text and visible text that are searched. */
const maxSearched = 262_144
/** Characters of each that say what the mail is about. */
const maxTopic = 4_096
const minConfidence = 0.3

/**
 * One-time codes of a mail, best first: what has the form of a code (`candidates.ts`) and is named as one by the
 * words around it (`surroundings.ts`), unless the mail is about something else. `visible` is what a reader sees of
 * its HTML.
 */
export function findCodes(
  subject: string | null,
  text: string | null,
  visible: string | null,
  maxCodes: number,
): OneTimeCode[] {
  const isReply = subject !== null && isReplySubject(subject)
  const originals = [isReply ? '' : subject, text, visible].map((part) => (part ?? '').slice(0, maxSearched))
  const searched = originals.map((part) => searchedText(part, isReply))
  const topic = new Topic(searched)
  const best = new Map<string, OneTimeCode>()
  for (const [index, part] of searched.entries()) {
    for (const place of placesIn(part)) {
      const { value, start, end } = place
      const confidence = confidenceIn(place, topic)
      if (confidence < Math.max(minConfidence, best.get(value)?.confidence ?? 0)) continue
      best.set(value, { value, text: originals[index]?.slice(start, end) ?? '', confidence })
    }
  }
  return [...best.values()]
    .map((code) => ({ ...code, confidence: Math.round(Math.min(code.confidence, 0.99) * 100) / 100 }))
    .sort((one, other) => other.confidence - one.confidence)
    .slice(0, maxCodes)
}

const topics = new Vocabulary({
  code: strongWords,
  confirming: [...weakWords, ...signInWords, ...confirmingWords],
  promotion: promotionWords,
  appointment: appointmentWords,
})
const receipts = new Vocabulary({ receipt: receiptWords })
const handovers = new Vocabulary({ handover: handoverWords })
const approvals = new Vocabulary({ approval: approvalWords })

/** What a mail is about. */
class Topic {
  private read: string | null = null
  private kinds: ReturnType<typeof topics.kindsIn> | null = null

  constructor(private readonly parts: readonly string[]) {}

  has(kind: 'code' | 'confirming' | 'promotion' | 'appointment'): boolean {
    return (this.kinds ??= topics.kindsIn(this.text)).has(kind)
  }

  get text(): string {
    return (this.read ??= lowerCase(this.parts.map((part) => part.slice(0, maxTopic)).join('\n')))
  }
}

function confidenceIn(place: Place, topic: Topic): number {
  const { evidence } = place
  const confidence = evidence === null ? unnamed(place, topic) : ofForm(place, evidence)
  if (confidence <= 0 || evidence === null) return confidence
  if (evidence.isForHandover && !handovers.isIn(topic.text)) return 0
  if (topic.has('appointment') || isForEverybody(place, evidence, topic)) return 0
  return isCardApproval(place, topic) ? 0 : confidence
}

/** Digits alone on a line: "493201" in a mail about signing in, or in a language that has no words here. */
function unnamed({ isAlone, form, value }: Place, topic: Topic): number {
  if (!isAlone || form !== 'digits' || isYear(value)) return 0
  if (topic.has('code') || topic.has('confirming')) return value.length >= 6 ? 0.65 : 0.5
  return value.length === 6 ? 0.35 : 0
}

/** Promotion codes are words or round numbers: "enter the code 739 004 at checkout" is for one reader. */
function isForEverybody({ form, value }: Place, { isDirect, isStrong }: Evidence, topic: Topic): boolean {
  const isForOne = isStrong || (isDirect && form === 'digits' && value.length >= 6)
  return !isForOne && topic.has('promotion') && !topic.has('code')
}

/** "Auth code 604418" on the receipt of a card payment: nobody types it. */
function isCardApproval({ lower, start }: Place, topic: Topic): boolean {
  const before = lower.slice(Math.max(0, start - 60), start)
  return approvals.isIn(before) && receipts.isIn(topic.text)
}

/** The rarer a form is for codes, or the commoner for other things, the more has to be said of it. */
function ofForm(
  { form, start, end, value, isAlone }: Place,
  { confidence, isDirect, isStrong }: Evidence,
): number {
  if (confidence === 0) return 0
  const isClear = isDirect || isAlone
  switch (form) {
    case 'digits':
      if (isYear(value) || isCalendarDate(value)) return isClear ? confidence - 0.2 : 0
      // Years, house numbers and postcodes are of this length too.
      if (!isClear && value.length < 6) return confidence < 0.6 ? 0 : confidence - 0.15
      return value.length === 6 ? confidence + 0.03 : confidence
    case 'capitals-and-digits':
      return isClear ? confidence - 0.03 : 0
    case 'letters-and-digits':
      // Tokens, host names and signatures have this form too.
      return isDirect || (isAlone && isStrong) ? confidence - 0.2 : 0
    case 'uneven-groups':
      return (isDirect && isStrong) || isAlone ? confidence - 0.2 : 0
    case 'capitals':
      // Headings and buttons are words in capitals.
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
