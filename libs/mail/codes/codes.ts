import type { Candidate } from './code-candidates.js'
import { isYear } from './code-measures.js'
import { isReply } from './code-quotes.js'
import { CodeSource, type Surroundings } from './code-source.js'
import { Subject } from './code-subject.js'
import type { OneTimeCode } from '../message.js'

/** Characters of each of subject, text and visible text that are searched. */
const maxSearched = 262_144
/** Characters of each that tell what the mail is about. */
const maxAbout = 4_096
const leastConfidence = 0.3

/** One-time codes of a mail, best first. `visible` is what a reader sees of its HTML. */
export function findCodes(
  subject: string | null,
  text: string | null,
  visible: string | null,
  maxCodes: number,
): OneTimeCode[] {
  const isAnswer = isReply(subject)
  const sources = [isAnswer ? null : subject, text, visible].map(
    (source) => new CodeSource((source ?? '').slice(0, maxSearched), isAnswer),
  )
  const rated = sources.flatMap((source) => source.candidates.map((candidate) => ({ source, candidate })))
  if (rated.length === 0) return []

  let known: Subject | null = null
  const about = (): Subject =>
    (known ??= new Subject(sources.map(({ lower }) => lower.slice(0, maxAbout)).join('\n')))

  const best = new Map<string, OneTimeCode>()
  for (const { source, candidate } of rated) {
    const confidence = confidenceIn(candidate, source.surroundingsOf(candidate), about)
    if (confidence < leastConfidence) continue
    if (source.isOfApproval(candidate) && about().isReceipt) continue
    const listed = best.get(candidate.value)
    const code = {
      value: candidate.value,
      text: source.original.slice(candidate.start, candidate.end),
      confidence,
    }
    if (listed === undefined) best.set(candidate.value, code)
    else if (listed.confidence < confidence) Object.assign(listed, code)
  }
  return [...best.values()]
    .map((code) => ({ ...code, confidence: Math.round(Math.min(code.confidence, 0.99) * 100) / 100 }))
    .sort((one, other) => other.confidence - one.confidence)
    .slice(0, maxCodes)
}

function confidenceIn(candidate: Candidate, near: Surroundings, about: () => Subject): number {
  if (near.isRefused) return 0
  const rating = rateForm(candidate, near)
  if (rating > 0) {
    if (near.isForHandover === true && !about().isHandover) return 0
    // What everybody may use is a word or a round number: "enter the code 739 004 at checkout" is for one.
    const isOfOne = near.isDirect && candidate.form === 'digits' && candidate.value.length >= 6
    const isForAll = !near.isStrong && !isOfOne && about().isPromotion
    return isForAll || about().isAppointment ? 0 : rating
  }
  if (!near.isAlone || candidate.form !== 'digits' || isYear(candidate.value)) return 0
  if (about().isAboutCodes) return candidate.value.length >= 6 ? 0.65 : 0.5
  return candidate.value.length === 6 ? 0.35 : 0
}

function rateForm(
  { start, end, value, form }: Candidate,
  { isDirect, isAlone, isStrong, confidence }: Surroundings,
): number {
  if (confidence === 0) return 0
  switch (form) {
    case 'digits':
      if (isYear(value) || isCalendarDate(value)) return isDirect || isAlone ? confidence - 0.2 : 0
      // Years, house numbers and postcodes are of this length too.
      if (!isAlone && !isDirect && value.length < 6) return confidence < 0.6 ? 0 : confidence - 0.15
      return value.length === 6 ? confidence + 0.03 : confidence
    case 'capitals-and-digits':
      return isDirect || isAlone ? confidence - 0.03 : 0
    case 'letters-and-digits':
      // The form of tokens, names of hosts and signatures, too.
      return isDirect || (isAlone && isStrong) ? confidence - 0.2 : 0
    case 'uneven-groups':
      return (isDirect && isStrong) || isAlone ? confidence - 0.2 : 0
    case 'capitals':
      // Words in capitals are headings and buttons; only the form of a code tells one from them.
      if (!(isDirect || isAlone) || !isUnlikeWord(value)) return 0
      return end - start > value.length ? confidence - 0.15 : confidence - 0.25
  }
}

function isCalendarDate(value: string): boolean {
  return /^(?:19|20)\d\d(?:0[1-9]|1[0-2])(?:0[1-9]|[12]\d|3[01])$/.test(value)
}

function isUnlikeWord(value: string): boolean {
  return !/[AEIOUY]/.test(value) || /[^AEIOUY]{4}/.test(value)
}
