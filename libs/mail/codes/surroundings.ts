import { findCandidates, type Candidate } from './candidates.js'
import { SIGN_IN_WORDS } from './code-words.js'
import { hasEnteringVerb, instructionAround } from './instructions.js'
import {
  beginsWithCopula,
  codeMentionAfter,
  endsWithDeterminer,
  endsWithCopula,
  isBare,
  isDecoration,
  isAdjacent,
  labelBefore,
  lastSentenceEnd,
  textBefore,
  upTo,
  type Mention,
} from './mentions.js'
import { ACCOUNT_WORDS, EXPIRED_WORDS, UNITS } from './number-words.js'
import { Vocabulary } from './vocabulary.js'

/** The evidence in the words around a candidate. */
export interface Evidence {
  /** That it is a code; 0 if it is something else. */
  confidence: number
  /** Whether the words are next to the candidate and about no other. */
  isDirect: boolean
  /** Whether the words only name codes. */
  isStrong: boolean
  /** Whether nothing but a verb such as "is", or the end of a line, is between the words and the candidate. */
  isNamedByCopula: boolean
  /** Whether it is a code only in a mail about a parcel or a ride. */
  isForHandover: boolean
  /** The end of words after the candidate that name it; 0 if there are none. */
  namedUntil: number
}

/** A candidate with the text around it. */
export interface CandidateInContext extends Candidate {
  /** The whole text in lower case. */
  lower: string
  lineStart: number
  lineEnd: number
  /** Whether its line contains nothing else. */
  isAlone: boolean
  /** Its line up to the candidate; if the line was only wrapped, with the end of the previous line. */
  before: string
  /** Null if the words around it say nothing about it. */
  evidence: Evidence | null
}

/** The candidates of a text that `codes.ts` has prepared, with the evidence for each. */
export function* candidatesInContext(text: string): Generator<CandidateInContext> {
  const found = findCandidates(text)
  const lower = found.length > 0 ? lowerCase(text) : ''
  let previous: CandidateInContext | null = null
  for (const each of found) {
    const candidate = inContext(each, lower)
    if (previous?.evidence?.isStrong === true && continuesList(lower, previous, candidate)) {
      candidate.isAlone = previous.isAlone
      candidate.evidence = previous.evidence
    } else candidate.evidence = evidenceFor(candidate, previous?.evidence?.namedUntil ?? 0)
    yield candidate
    previous = candidate
  }
}

// The dot comes first, since the engine finds a single character quickly.
const ABBREVIATING = /\.(?:(?<=(?<!\p{L})ref\.)|(?<=(?<!\p{L})(?:no|nr|num|núm)\.)(?= ?#?\d))/gu

/** A text in lower case, with unchanged positions: `İ` would become two characters. "No. 5" does not end a sentence. */
export function lowerCase(text: string): string {
  return text.replaceAll('İ', 'i').toLowerCase().replace(ABBREVIATING, ' ')
}

const NOT_A_CODE: Evidence = {
  confidence: 0,
  isDirect: false,
  isStrong: false,
  isNamedByCopula: false,
  isForHandover: false,
  namedUntil: 0,
}

function evidenceFor(candidate: CandidateInContext, namedUntil: number): Evidence | null {
  if (isAmount(candidate) || isAccountId(candidate)) return NOT_A_CODE
  return (
    namedBefore(candidate, namedUntil) ??
    namedAfter(candidate) ??
    forSigningIn(candidate) ??
    instructed(candidate) ??
    namedOnOtherLines(candidate) ??
    instructedOnOtherLines(candidate)
  )
}

// "Your backup codes: 48201933, 10394857", or one code per line, possibly numbered.
const LIST_SEPARATOR = /^(?=.{0,12}[\n,•·|])[\s,•*·–|-]*(?:\d{1,2}[.):])?[\s•*·]+$/s

/**
 * Whether a candidate continues a list of codes: it has the same form, and only a separator before it, without an empty
 * line after a sentence.
 */
function continuesList(
  text: string,
  previous: CandidateInContext,
  { start, form, value }: Candidate,
): boolean {
  const isSameForm = form === previous.form || (form !== 'digits' && previous.form !== 'digits')
  if (!isSameForm || value.length !== previous.value.length || start - previous.end > 12) return false
  const separator = text.slice(previous.end, start)
  return LIST_SEPARATOR.test(separator) && (previous.isAlone || !separator.includes('\n\n'))
}

const ORDINAL = /^\s*\d{1,2}[.):]\s+$/
/** Mail programs may have wrapped lines that have at least this many characters. */
const MIN_WRAPPED_LENGTH = 50
const MAX_BEFORE = 160

function inContext(candidate: Candidate, lower: string): CandidateInContext {
  const { start, end } = candidate
  const lineStart = lower.lastIndexOf('\n', start - 1) + 1
  const lineFeed = lower.indexOf('\n', end)
  const lineEnd = lineFeed === -1 ? lower.length : lineFeed
  const ahead = lower.slice(lineStart, Math.min(start, lineStart + 20))
  const isAlone =
    start - lineStart < 20 &&
    lineEnd - end < 20 &&
    (isDecoration(ahead) || ORDINAL.test(ahead)) &&
    isDecoration(lower.slice(end, lineEnd))
  const previousLineStart = lower.lastIndexOf('\n', lineStart - 2) + 1
  const isWrapped =
    lineStart - previousLineStart > MIN_WRAPPED_LENGTH &&
    !/[.:!?。：！？]\s{0,3}$/.test(textBefore(lower, lineStart, 4))
  const before = lower.slice(Math.max(isWrapped ? previousLineStart : lineStart, start - MAX_BEFORE), start)
  return { ...candidate, lower, lineStart, lineEnd, isAlone, before, evidence: null }
}

const UNIT_AFTER = new RegExp(`^ ?(?:${UNITS.join('|')})(?![\\p{L}\\p{N}])`, 'u')
const CURRENCY_BEFORE =
  /(?:(?<!\p{L})(?:eur|usd|gbp|chf|inr|jpy|pln|czk|huf|sek|nok|dkk|ron|rm|rp|rs\.?|kr|zł|nt\$|r\$)|[$€£¥₹₽₩₺₪₴฿]) ?$/u

/** An amount of money, time or things: "250000 users", "EUR 4500". */
function isAmount({ lower, start, end }: CandidateInContext): boolean {
  return UNIT_AFTER.test(lower.slice(end, end + 14)) || CURRENCY_BEFORE.test(textBefore(lower, start, 6))
}

const ACCOUNTS = new Set(ACCOUNT_WORDS)

/** "account 4482913" */
function isAccountId({ lower, start }: CandidateInContext): boolean {
  const word = /(\p{L}{4,13}) $/u.exec(textBefore(lower, start, 14))?.[1]
  return word !== undefined && ACCOUNTS.has(word)
}

const EXPIRED = new Vocabulary({ expired: EXPIRED_WORDS })

/** "The code 493201 has expired." */
export function isExpired({ lower, end }: CandidateInContext): boolean {
  const after = upTo(lower.slice(end, end + 120), /[.!?。！？](?:\s|$)/)
  return EXPIRED.matches(after)
}

/** "Your verification code is 493201." */
function namedBefore(candidate: CandidateInContext, namedUntil: number): Evidence | null {
  const { before, start, form } = candidate
  const mention = labelBefore(before)
  if (mention === null) return null
  if (mention.kind === 'other') {
    // In "To pay your invoice enter 493201", the verb is nearer than "invoice".
    return instructed(candidate, mention.end) ?? NOT_A_CODE
  }
  const gap = before.slice(mention.end)
  const sentenceEnd = lastSentenceEnd(gap)
  // "Airport code: EDDF"
  if (form === 'letters' && mention.kind === 'weak' && !isBare(before, mention)) return NOT_A_CODE
  const isNextToIt = isAdjacent(gap) && (form !== 'letters' || mention.kind === 'strong')
  const isNamedByCopula = sentenceEnd === 0 && (isNextToIt || endsWithCopula(gap))
  const isDirect = sentenceEnd === 0 && !/\d/.test(gap)
  // The words name the first number in "493201 is your OTP for journey 604418", and the second in "your code for request
  // RBT5K5 is 604418".
  const after = lineAfter(candidate)
  const isSubject = beginsWithCopula(after) && /^.{1,12}\d{4}/.test(after)
  if (!isNamedByCopula && (isSubject || start - gap.length <= namedUntil)) return NOT_A_CODE
  if (isNamedByCopula || isDirect) return { ...evidenceOf(mention, true, 0.95, 0.88), isNamedByCopula }
  const isNear = sentenceEnd === 0 || isDecoration(gap.slice(sentenceEnd))
  return isNear ? evidenceOf(mention, false, 0.82, 0.6) : null
}

/** "493201 is your verification code." */
function namedAfter(candidate: CandidateInContext): Evidence | null {
  const after = lineAfter(candidate)
  const mention = codeMentionAfter(after)
  if (mention === null || (mention.kind === 'weak' && !beginsClause(candidate))) return null
  const isNamedByCopula = beginsWithCopula(after)
  // Not in "[INC0048291] Access code", "PROJ-48211 Access code", "Your DHL24 access code"
  const { lower, end, form, isUnusualForm, before } = candidate
  const needsCopula =
    isUnusualForm ||
    form === 'letters-and-digits' ||
    /[\])]/.test(lower.charAt(end - 1)) ||
    (form !== 'digits' && endsWithDeterminer(before))
  if (needsCopula && !isNamedByCopula) return null
  return { ...evidenceOf(mention, true, 0.94, 0.87), isNamedByCopula, namedUntil: end + mention.end }
}

const SIGN_INS = new Vocabulary({ signIn: SIGN_IN_WORDS })

/** "Press 493201 to sign in" gives only the purpose, but does not say that the number is a code. */
function forSigningIn(candidate: CandidateInContext): Evidence | null {
  if (!isPlainNumber(candidate) || !beginsClause(candidate)) return null
  const clause = upTo(lineAfter(candidate), /[.,!?，。！？;；|(]|\d/)
  return SIGN_INS.matches(clause) ? { ...NOT_A_CODE, isDirect: true, confidence: 0.7 } : null
}

/** "Enter 493201", "Tell the courier 4932". `labelEnd` is the end of words in `before` that name another number. */
function instructed(candidate: CandidateInContext, labelEnd = 0): Evidence | null {
  const { lower, end, before, form } = candidate
  if (form !== 'digits' && form !== 'capitals-and-digits') return null
  const start = lastSentenceEnd(before)
  const after = lower.slice(end, end + 100)
  const instruction = instructionAround(before.slice(start), after, Math.max(0, labelEnd - start))
  if (instruction === null || !(isPlainNumber(candidate) || instruction.hasPurpose)) return null
  const { kind, hasPurpose } = instruction
  const isForHandover = kind === 'using' && !hasPurpose
  const confidence = hasPurpose ? 0.75 : 0.65
  return { ...NOT_A_CODE, isDirect: true, isNamedByCopula: hasPurpose, isForHandover, confidence }
}

/** "Your code:" on a line above, or "is your code" below. */
function namedOnOtherLines(candidate: CandidateInContext): Evidence | null {
  const { lower, lineStart, lineEnd, isAlone } = candidate
  const above = textBefore(lower, lineStart, 200)
  const mention = labelBefore(above)
  if (mention !== null && mention.kind !== 'other') {
    if (isAlone) return { ...evidenceOf(mention, false, 0.93, 0.88), isNamedByCopula: true }
    if (beginsClause(candidate)) return evidenceOf(mention, false, 0.55, 0)
  }
  const below = isAlone ? codeMentionAfter(lower.slice(lineEnd, lineEnd + 120)) : null
  return below === null ? null : evidenceOf(below, false, 0.75, 0.7)
}

/** "Type this number:" on a line above, or below. */
function instructedOnOtherLines({ lower, lineStart, end, isAlone }: CandidateInContext): Evidence | null {
  const isInstructed =
    isAlone &&
    (hasEnteringVerb(textBefore(lower, lineStart, 120)) || hasEnteringVerb(lower.slice(end, end + 120)))
  return isInstructed ? { ...NOT_A_CODE, confidence: 0.65 } : null
}

function evidenceOf({ kind }: Mention, isDirect: boolean, ifStrong: number, ifWeak: number): Evidence {
  const isStrong = kind === 'strong'
  return { ...NOT_A_CODE, confidence: isStrong ? ifStrong : ifWeak, isDirect, isStrong }
}

/** The beginning of the text between a candidate and the end of its line. */
function lineAfter({ lower, end, lineEnd }: CandidateInContext): string {
  return lower.slice(end, Math.min(lineEnd, end + 60))
}

/** Whether a candidate begins its clause, or follows the first word of it: "Use 493201 as …". */
function beginsClause({ before }: CandidateInContext): boolean {
  const sentence = before.slice(lastSentenceEnd(before))
  const clause = sentence.slice(sentence.search(/[^:：,，—–]{0,200}$/)).trim()
  return isDecoration(clause) || /^[^\p{L}\p{N}]{0,3}\p{L}{2,12}$/u.test(clause)
}

function isPlainNumber({ form, value, isUnusualForm }: Candidate): boolean {
  return form === 'digits' && !isUnusualForm && !isDate(value)
}

/** A year, or a date such as 20261121. */
export function isDate(value: string): boolean {
  return /^(?:19|20)\d\d(?:(?:0[1-9]|1[0-2])(?:0[1-9]|[12]\d|3[01]))?$/.test(value)
}
