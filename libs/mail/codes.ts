import { findCandidates, plainCharacters, type Candidate } from './code-candidates.js'
import { firstCodeMention, isAboutCodes, lastMention, type Mention } from './code-context.js'
import type { OneTimeCode } from './message.js'

/** Characters of each of subject, text and visible text that are searched. */
const maxSearched = 262_144
const leastConfidence = 0.3

/** One-time codes of a mail, best first. `visible` is what a reader sees of its HTML. */
export function findCodes(
  subject: string | null,
  text: string | null,
  visible: string | null,
  maxCodes: number,
): OneTimeCode[] {
  const sources = [subject, text, visible].map((source) => new Source((source ?? '').slice(0, maxSearched)))
  const rated = sources.flatMap((source) => source.candidates.map((candidate) => ({ source, candidate })))
  if (rated.length === 0) return []

  let answer: boolean | null = null
  const mailIsAboutCodes = (): boolean =>
    (answer ??= sources.some((source) => isAboutCodes(source.lower.slice(0, 4_096))))

  const best = new Map<string, OneTimeCode>()
  for (const { source, candidate } of rated) {
    const confidence = source.confidenceIn(candidate, mailIsAboutCodes)
    if (confidence < leastConfidence) continue
    const known = best.get(candidate.value)
    const code = {
      value: candidate.value,
      text: source.original.slice(candidate.start, candidate.end),
      confidence,
    }
    if (known === undefined) best.set(candidate.value, code)
    else if (known.confidence < confidence) Object.assign(known, code)
  }
  return [...best.values()]
    .map((code) => ({ ...code, confidence: Math.round(Math.min(code.confidence, 0.99) * 100) / 100 }))
    .sort((one, other) => other.confidence - one.confidence)
    .slice(0, maxCodes)
}

/** One of the texts in which a code may stand. */
class Source {
  readonly candidates: Candidate[]
  private readonly plain: string
  private lowerCased: string | null = null

  constructor(readonly original: string) {
    this.plain = plainCharacters(original)
    this.candidates = withoutAddresses(this.plain, findCandidates(this.plain))
  }

  get lower(): string {
    // İ grows by one when lower-cased; positions have to stay.
    return (this.lowerCased ??= this.plain.replaceAll('İ', 'i').toLowerCase())
  }

  confidenceIn(candidate: Candidate, mailIsAboutCodes: () => boolean): number {
    if (isMeasure(this.lower, candidate)) return 0
    const near = this.nearby(candidate)
    const rating = rateForm(candidate, near.isDirect, near.isAlone, near.confidence)
    if (rating > 0 || near.isRefused) return rating
    if (!near.isAlone || candidate.form !== 'digits' || isYear(candidate.value)) return 0
    if (mailIsAboutCodes()) return candidate.value.length >= 6 ? 0.65 : 0.5
    return candidate.value.length === 6 ? 0.35 : 0
  }

  private nearby({ start, end }: Candidate): Nearby {
    const lineStart = this.lower.lastIndexOf('\n', start - 1) + 1
    const nextBreak = this.lower.indexOf('\n', end)
    const lineEnd = nextBreak === -1 ? this.lower.length : nextBreak
    const isAlone =
      isDecoration(this.lower.slice(Math.max(lineStart, start - 20), start)) &&
      isDecoration(this.lower.slice(end, Math.min(lineEnd, end + 20))) &&
      start - lineStart < 20 &&
      lineEnd - end < 20

    const before = this.lower.slice(Math.max(lineStart, start - 120), start)
    const mention = freeMention(before)
    if (mention !== null) {
      if (mention.kind === 'other') return { isRefused: true, isDirect: false, isAlone, confidence: 0 }
      const gap = before.slice(mention.end)
      const isDirect = gap.length <= 40 && !/[.!?。！？]\s|\d/.test(gap)
      const confidence = isDirect ? pick(mention, 0.95, 0.88) : pick(mention, 0.82, 0.66)
      return { isRefused: false, isDirect, isAlone, confidence }
    }

    const behind = codeMentionBehind(this.lower.slice(end, Math.min(lineEnd, end + 60)))
    if (behind !== null) {
      return { isRefused: false, isDirect: true, isAlone, confidence: pick(behind, 0.94, 0.87) }
    }
    return this.onOtherLines(lineStart, lineEnd, isAlone)
  }

  private onOtherLines(lineStart: number, lineEnd: number, isAlone: boolean): Nearby {
    const above = this.lower.slice(Math.max(0, lineStart - 200), lineStart)
    const mention = freeMention(above)
    if (mention !== null) {
      if (mention.kind === 'other' && above.slice(mention.end).trim().length < 4) {
        return { isRefused: true, isDirect: false, isAlone, confidence: 0 }
      }
      if (mention.kind !== 'other') {
        const confidence = isAlone ? pick(mention, 0.93, 0.88) : pick(mention, 0.55, 0.4)
        return { isRefused: false, isDirect: false, isAlone, confidence }
      }
    }
    const below = isAlone ? codeMentionBehind(this.lower.slice(lineEnd, lineEnd + 120)) : null
    const confidence = below === null ? 0 : pick(below, 0.75, 0.7)
    return { isRefused: false, isDirect: false, isAlone, confidence }
  }
}

interface Nearby {
  /** The words around say that it is something else. */
  isRefused: boolean
  /** The words around say just of this that it is a code. */
  isDirect: boolean
  isAlone: boolean
  confidence: number
}

function rateForm(
  { value, form }: Candidate,
  isDirect: boolean,
  isAlone: boolean,
  confidence: number,
): number {
  if (confidence === 0) return 0
  switch (form) {
    case 'digits':
      if (isYear(value) || isCalendarDate(value)) return isDirect || isAlone ? confidence - 0.2 : 0
      if (!isAlone && !isDirect && value.length < 6) return confidence - 0.15
      return value.length === 6 ? confidence + 0.03 : confidence
    case 'capitals-and-digits':
      return isDirect || isAlone ? confidence - 0.03 : 0
    case 'letters-and-digits':
      return isDirect || isAlone ? confidence - 0.2 : 0
    case 'capitals':
      // Words in capitals are headings and buttons; only the form of a code tells one from them.
      return (isDirect || isAlone) && isUnlikeWord(value) ? confidence - 0.25 : 0
  }
}

function pick(mention: Mention, ifStrong: number, ifWeak: number): number {
  return mention.kind === 'strong' ? ifStrong : ifWeak
}

/**
 * What the next number is understood by: the last mention, unless another number follows that already. "Your
 * code for order 998877 is …" leaves the code free.
 */
function freeMention(text: string): Mention | null {
  const mention = lastMention(text)
  if (mention === null || !isTaken(text.slice(mention.end))) return mention
  if (mention.kind !== 'other') return null
  const start = text.slice(0, mention.start)
  const earlier = lastMention(start)
  return earlier === null || earlier.kind === 'other' || isTaken(start.slice(earlier.end)) ? null : earlier
}

function isTaken(gap: string): boolean {
  return /\d{4}|\d{3}[- ]\d{3}/.test(gap)
}

/** A mention in the same sentence, with no other number before it: "493201 is your code". */
function codeMentionBehind(text: string): Mention | null {
  const stop = text.search(/[.!?。！？]|\d/)
  const clause = stop === -1 ? text : text.slice(0, stop)
  const mention = firstCodeMention(clause)
  // "10000 points with promo code": what the words before the number could say must hold behind it too.
  return mention === null || lastMention(clause)?.kind === 'other' ? null : mention
}

function isDecoration(text: string): boolean {
  return !/[\p{L}\p{N}]/u.test(text)
}

function isYear(value: string): boolean {
  return /^(?:19|20)\d\d$/.test(value)
}

function isCalendarDate(value: string): boolean {
  return /^(?:19|20)\d\d(?:0[1-9]|1[0-2])(?:0[1-9]|[12]\d|3[01])$/.test(value)
}

function isUnlikeWord(value: string): boolean {
  return !/[AEIOUY]/.test(value) || /[^AEIOUY]{4}/.test(value)
}

const unitBehind =
  /^[ \u00a0]?(?:eur|usd|gbp|chf|inr|jpy|kr|zł|руб|₽|元|円|원|points?|punkte|credits?|users?|people|items?|min(?:ute)?s?|hours?|hrs?|days?|seconds?|sec|stunden|tage|minuten|heures|jours|px|kb|mb|gb|km|kg)(?![a-z])/
const currencyBefore = /(?:eur|usd|gbp|chf|inr|jpy|rs\.?|kr|zł|[$€£¥₹₽₩])[ \u00a0]$/

/** An amount of money, time or things. */
function isMeasure(lower: string, { start, end }: Candidate): boolean {
  return (
    unitBehind.test(lower.slice(end, end + 10)) ||
    currencyBefore.test(lower.slice(Math.max(0, start - 5), start))
  )
}

/** What stands within a URL is no code of its own. */
function withoutAddresses(text: string, candidates: Candidate[]): Candidate[] {
  if (candidates.length === 0 || !(text.includes('://') || text.includes('www.'))) return candidates
  const ranges = [...text.matchAll(/(?:https?:\/\/|www\.)[^\s<>"]+/gi)].map((match) => ({
    start: match.index,
    end: match.index + match[0].length,
  }))
  let range = 0
  return candidates.filter(({ start }) => {
    while ((ranges[range]?.end ?? Infinity) <= start) range++
    return start < (ranges[range]?.start ?? Infinity)
  })
}
