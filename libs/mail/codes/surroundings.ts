import {
  findCandidates,
  type Candidate,
  codeMentionBehind,
  isDecoration,
  lastSentenceEnd,
  namingBefore,
  upTo,
  type Mention,
} from './candidates.js'
import { signInWords } from './code-words.js'
import { asksToEnter, instructionAround } from './instructions.js'
import { expiredWords, holderWords, units } from './number-words.js'
import { Vocabulary } from './vocabulary.js'

/** What the words around a candidate say of it. */
export interface Evidence {
  /** That it is a code; 0 if it is something else. */
  confidence: number
  /** Of just this candidate, and next to it. */
  isDirect: boolean
  /** By words that only name codes. */
  isStrong: boolean
  /** It is a code only if the mail is about a parcel or a ride. */
  isForHandover: boolean
}

/** A candidate in its text. */
export interface Place extends Candidate {
  /** All of the text, lower-cased. */
  lower: string
  lineStart: number
  lineEnd: number
  /** Nothing else stands on its line. */
  isAlone: boolean
  /** Its line before it; if that was only wrapped, with the end of the line above. */
  before: string
  /** null if nothing is said. */
  evidence: Evidence | null
}

const somethingElse: Evidence = { confidence: 0, isDirect: false, isStrong: false, isForHandover: false }

/** The candidates of a text (`searchedText`), with what is said of each. */
export function* placesIn(text: string): Generator<Place> {
  const candidates = findCandidates(text)
  const lower = candidates.length > 0 ? lowerCase(text) : ''
  let previous: Place | null = null
  for (const candidate of candidates) {
    const place = placeOf(candidate, lower)
    if (previous?.evidence?.isStrong === true && isNextOfList(lower, previous, candidate)) {
      place.isAlone = previous.isAlone
      place.evidence = previous.evidence
    } else place.evidence = evidenceFor(text, place)
    yield place
    previous = place
  }
}

/** In lower case, with every position as it was: `İ` would grow by one. */
export function lowerCase(text: string): string {
  return text.replaceAll('İ', 'i').toLowerCase()
}

function evidenceFor(text: string, place: Place): Evidence | null {
  if (isMeasure(place) || isHolders(place) || hasInitials(text, place) || isExpired(place))
    return somethingElse
  return (
    namedBefore(place) ??
    namedBehind(place) ??
    forSigningIn(place) ??
    instructed(place) ??
    namedOnOtherLines(place) ??
    toBeEntered(place)
  )
}

// One mail: "Your backup codes: 48201933, 10394857" or one below the other, possibly with ordinals.
const betweenListed = /^(?=.{0,12}[\n,•·|])[\s,•*·–|-]*(?:\d{1,2}[.):])?[\s•*·]+$/s

/** Whether it is the next of a list of codes: alike, and with nothing but an ordinal between. */
function isNextOfList(text: string, previous: Candidate, { start, form, value }: Candidate): boolean {
  if (form !== previous.form || value.length !== previous.value.length || start - previous.end > 12)
    return false
  return betweenListed.test(text.slice(previous.end, start))
}

const ordinal = /^\s*\d{1,2}[.):]\s+$/
/** Lines of at least so many characters may have been wrapped by a mail program. */
const minWrapped = 50
const maxBefore = 160

function placeOf(candidate: Candidate, lower: string): Place {
  const { start, end } = candidate
  const lineStart = lower.lastIndexOf('\n', start - 1) + 1
  const lineFeed = lower.indexOf('\n', end)
  const lineEnd = lineFeed === -1 ? lower.length : lineFeed
  const ahead = lower.slice(lineStart, Math.min(start, lineStart + 20))
  const isAlone =
    start - lineStart < 20 &&
    lineEnd - end < 20 &&
    (isDecoration(ahead) || ordinal.test(ahead)) &&
    isDecoration(lower.slice(end, lineEnd))
  const lineAbove = lower.lastIndexOf('\n', lineStart - 2) + 1
  const isWrapped =
    lineStart - lineAbove > minWrapped &&
    !/[.:!?。：！？]\s{0,3}$/.test(lower.slice(Math.max(0, lineStart - 4), lineStart))
  const before = lower.slice(Math.max(isWrapped ? lineAbove : lineStart, start - maxBefore, 0), start)
  return { ...candidate, lower, lineStart, lineEnd, isAlone, before, evidence: null }
}

const unitBehind = new RegExp(`^[ \\u00a0]?(?:${units.join('|')})(?![\\p{L}\\p{N}])`, 'u')
const currencyBefore =
  /(?:(?<!\p{L})(?:eur|usd|gbp|chf|inr|jpy|pln|czk|huf|sek|nok|dkk|ron|rm|rp|rs\.?|kr|zł|nt\$|r\$)|[$€£¥₹₽₩₺₪₴฿])[ \u00a0]?$/u

/** An amount of money, time or things: "250000 users", "EUR 4500". */
function isMeasure({ lower, start, end }: Place): boolean {
  return (
    unitBehind.test(lower.slice(end, end + 14)) ||
    currencyBefore.test(lower.slice(Math.max(0, start - 6), start))
  )
}

const holders = new Set(holderWords)

/** "account 4482913" */
function isHolders({ lower, start }: Place): boolean {
  const word = /(\p{L}{4,13})[ \u00a0]$/u.exec(lower.slice(Math.max(0, start - 14), start))?.[1]
  return word !== undefined && holders.has(word)
}

const initials = /(?:^|[^\p{L}\p{N}])(\p{Lu}{2,5})[ \u00a0]$/u
const codeInitials = new Set('OTP PIN TAN TAC CODE KOD KODE COD MFA TOTP MTAN SMS IS BE'.split(' '))

/** Capitals before it say what it numbers: "RFC 6238", "CA 94107". In a text all in capitals they say nothing. */
function hasInitials(text: string, { start }: Place): boolean {
  const match = initials.exec(text.slice(Math.max(0, start - 8), start))
  if (match === null || codeInitials.has(match[1] ?? '')) return false
  return /\p{Ll}/u.test(text.slice(Math.max(0, start - 60), start + 60))
}

const expired = new Vocabulary({ expired: expiredWords })

/** "The code 493201 has expired." */
function isExpired({ lower, start, end }: Place): boolean {
  const before = lower.slice(Math.max(0, start - 100), start)
  const behind = upTo(lower.slice(end, end + 120), /[.!?。！？](?:\s|$)/)
  return [before.slice(lastSentenceEnd(before)), behind].some((part) => expired.isIn(part))
}

/** "Your verification code is 493201." */
function namedBefore(place: Place): Evidence | null {
  const { before } = place
  const naming = namingBefore(before)
  if (naming === null) return null
  const { mention, isDisputed } = naming
  if (mention.kind === 'other') {
    // "To pay your invoice enter 493201": the verb is nearer.
    const told = instructed(place, mention.end)
    return told !== null && told.confidence >= 0.7 ? told : somethingElse
  }
  const gap = before.slice(mention.end)
  const sentenceEnd = lastSentenceEnd(gap)
  const isClose = gap.length <= (mention.kind === 'strong' ? 60 : 40)
  if (sentenceEnd === 0 && isClose && !isDisputed && !/\d/.test(gap)) return by(mention, true, 0.95, 0.88)
  const rest = gap.slice(sentenceEnd)
  if (sentenceEnd === 0 || isDecoration(rest)) return by(mention, false, 0.82, 0.6)
  if (rest.length > 40 || isDisputed) return null
  return instructed(place) ?? by(mention, false, 0.55, 0.25)
}

/** "493201 is your verification code." */
function namedBehind({ lower, end, lineEnd, before }: Place): Evidence | null {
  const mention = codeMentionBehind(lower.slice(end, Math.min(lineEnd, end + 60)))
  const isNamed = mention !== null && (mention.kind === 'strong' || isBeginning(before))
  return isNamed ? by(mention, true, 0.94, 0.87) : null
}

const signIns = new Vocabulary({ signIn: signInWords })

/** "Press 493201 to sign in": what it is for is said, what it is goes without saying. */
function forSigningIn(place: Place): Evidence | null {
  const { lower, end, lineEnd, before } = place
  if (!isPlainNumber(place) || !isBeginning(before)) return null
  const clause = upTo(lower.slice(end, Math.min(lineEnd, end + 60)), /[.,!?，。！？;；|(]|\d/)
  return signIns.isIn(clause) ? { ...somethingElse, isDirect: true, confidence: 0.7 } : null
}

/** "Enter 493201", "Tell the courier 4932"; `named` is the end of what names another number. */
function instructed(place: Place, named = 0): Evidence | null {
  const { lower, end, before, form } = place
  if (!isPlainNumber(place) && form !== 'capitals-and-digits') return null
  const start = lastSentenceEnd(before)
  const behind = lower.slice(end, end + 100)
  const instruction = instructionAround(before.slice(start), behind, Math.max(0, named - start))
  if (instruction === null || !(isPlainNumber(place) || instruction.hasPurpose)) return null
  const { kind, hasPurpose } = instruction
  const isForHandover = kind === 'handing' && !hasPurpose
  return { ...somethingElse, isDirect: true, isForHandover, confidence: hasPurpose ? 0.75 : 0.65 }
}

/** "Your code:" above it, or "is your code" below. */
function namedOnOtherLines({ lower, lineStart, lineEnd, isAlone, before }: Place): Evidence | null {
  const above = lower.slice(Math.max(0, lineStart - 200), lineStart)
  const mention = namingBefore(above)?.mention
  if (mention?.kind === 'other') {
    if (above.slice(mention.end).trim().length < 4) return somethingElse
  } else if (mention !== undefined) {
    if (isAlone) return by(mention, false, 0.93, 0.88)
    if (isBeginning(before)) return by(mention, false, 0.55, 0)
  }
  const below = isAlone ? codeMentionBehind(lower.slice(lineEnd, lineEnd + 120)) : null
  return below === null ? null : by(below, false, 0.75, 0.7)
}

/** "Type this number:" above it, or below. */
function toBeEntered({ lower, lineStart, end, isAlone }: Place): Evidence | null {
  const isAsked =
    isAlone &&
    (asksToEnter(lower.slice(Math.max(0, lineStart - 120), lineStart)) ||
      asksToEnter(lower.slice(end, end + 120)))
  return isAsked ? { ...somethingElse, confidence: 0.65 } : null
}

function by({ kind }: Mention, isDirect: boolean, ifStrong: number, ifWeak: number): Evidence {
  const isStrong = kind === 'strong'
  return { confidence: isStrong ? ifStrong : ifWeak, isDirect, isStrong, isForHandover: false }
}

/** Whether a number behind this begins its clause, or follows its first word: "Use 493201 as …". */
function isBeginning(before: string): boolean {
  const sentence = before.slice(lastSentenceEnd(before))
  const clause = sentence.slice(sentence.search(/[^:：,，—–]{0,200}$/)).trim()
  return isDecoration(clause) || /^[^\p{L}\p{N}]{0,3}\p{L}{2,12}$/u.test(clause)
}

function isPlainNumber({ form, value }: Candidate): boolean {
  return form === 'digits' && !isYear(value)
}

export function isYear(value: string): boolean {
  return /^(?:19|20)\d\d$/.test(value)
}
