import { hasOpenEdges } from './code-edges.js'
import { groups, type Group, type Token } from './code-tokens.js'

/** A run of digits or capitals that has the form of a one-time code, wherever it stands. */
export interface Candidate {
  start: number
  end: number
  /** Without separators. */
  value: string
  form: CandidateForm
}

export type CandidateForm =
  /** 4 to 9 digits, possibly in groups or behind a short prefix (`G-123456`). */
  | 'digits'
  /** Digits and capitals. */
  | 'capitals-and-digits'
  /** Digits and letters of both cases or lower case. */
  | 'letters-and-digits'
  /** Digits, or digits and capitals, in groups of different lengths with hyphens, which articles and contracts have too. */
  | 'uneven-groups'
  /** Capitals alone. */
  | 'capitals'

const maxCandidates = 500
const maxTokenLength = 12

/** Reads a text in which every digit and Latin letter is ASCII (`plainCharacters`), in one pass. */
export function findCandidates(text: string): Candidate[] {
  const found: Candidate[] = []
  let digitRun: Group[] = []
  for (const group of groups(text)) {
    const previous = digitRun.at(-1)
    if (previous !== undefined && continues(text, previous, group)) {
      digitRun.push(group)
      continue
    }
    settleRun(text, digitRun, found)
    digitRun = []
    if (found.length >= maxCandidates) return found
    if (isPlainDigits(group)) digitRun = [group]
    else addIfWellFormed(text, group, found)
  }
  settleRun(text, digitRun, found)
  return found
}

function isPlainDigits({ tokens: [first, ...more] }: Group): boolean {
  return first !== undefined && more.length === 0 && first.hasDigit && !first.hasUpper && !first.hasLower
}

/** Groups of digits one space apart; single digits also on lines of their own, as cells of a table often are. */
function continues(text: string, previous: Group, next: Group): boolean {
  const gap = next.start - previous.end
  if (gap > 3 || !isPlainDigits(next)) return false
  const between = text.slice(previous.end, next.start)
  if (gap === 1)
    return between === ' ' || between === '\u00a0' || (between === '\n' && areSingle(previous, next))
  // "7 3 0 – 4 1 8"
  return areSingle(previous, next) && /^\s*[-–]?\s*$/.test(between)
}

function areSingle(previous: Group, next: Group): boolean {
  return previous.end - previous.start === 1 && next.end - next.start === 1
}

function settleRun(text: string, run: Group[], found: Candidate[]): void {
  const first = run[0]
  const last = run.at(-1)
  if (first === undefined || last === undefined) return
  if (run.length > 1) {
    const shape = run.map((group) => group.end - group.start)
    if (isShapeOfCode(shape)) {
      addCandidate(text, first.start, last.end, 'digits', found)
      return
    }
    // Three groups or more in another shape are a phone, card or account number.
    if (run.length > 2 || text.charAt(first.start - 1) === '+') return
    // And so are two that begin with a zero.
    if (text.charAt(first.start) === '0' && last.end - first.start > 7) return
  }
  for (const group of run) addIfWellFormed(text, group, found)
}

function isShapeOfCode(shape: number[]): boolean {
  const joined = shape.join('-')
  return (
    joined === '3-3' ||
    joined === '4-4' ||
    joined === '2-2-2' ||
    joined === '3-3-3' ||
    /^1(?:-1){3,7}$/.test(joined)
  )
}

function addIfWellFormed(text: string, group: Group, found: Candidate[]): void {
  const form = formOf(text, group)
  if (form === null) return
  const [prefix, digits] = group.tokens
  const start =
    form === 'digits' && prefix?.hasUpper === true && digits !== undefined ? digits.start : group.start
  addCandidate(text, group.start, group.end, form, found, start)
}

function addCandidate(
  text: string,
  start: number,
  end: number,
  form: CandidateForm,
  found: Candidate[],
  valueStart = start,
): void {
  if (!hasOpenEdges(text, start, end)) return
  const value = text.slice(valueStart, end).replace(/[^0-9A-Za-z]/g, '')
  found.push({ start, end, value, form })
}

function formOf(text: string, group: Group): CandidateForm | null {
  const [first, second] = group.tokens
  if (first === undefined) return null
  const lengths = group.tokens.map((token) => token.end - token.start)
  const [length = 0] = lengths
  const hasDigit = group.tokens.some((token) => token.hasDigit)
  const hasUpper = group.tokens.some((token) => token.hasUpper)
  if (second === undefined) {
    if (length > maxTokenLength || /[^\x00-\x7f]/.test(text.slice(group.start, group.end))) return null
    if (!hasDigit) return length >= 5 && length <= 10 ? 'capitals' : null
    if (first.hasLower)
      return length >= 5 && !isMasked(text, first) && !isTime(text, first) ? 'letters-and-digits' : null
    if (first.hasUpper) return length >= 4 && length <= 10 ? 'capitals-and-digits' : null
    return length >= 4 && length <= 8 ? 'digits' : null
  }
  if (group.tokens.some((token) => token.hasLower))
    return isOfSmallLetters(text, group) ? 'letters-and-digits' : null
  if (!hasUpper && isShapeOfCode(lengths)) return 'digits'
  const [, secondLength = 0] = lengths
  const isPrefixed = lengths.length === 2 && length <= 2 && !first.hasDigit && !second.hasUpper
  if (isPrefixed) return secondLength >= 4 && secondLength <= 8 ? 'digits' : null
  const isEven = length >= 3 && length <= 5 && lengths.length <= 4 && lengths.every((each) => each === length)
  if (!isEven) return hasDigit && isUneven(lengths, hasUpper) ? 'uneven-groups' : null
  return hasDigit ? 'capitals-and-digits' : 'capitals'
}

// "10am-11pm", "1st-5th", "20cm-30cm"
const quantity = /^\d{1,3}(?:am|pm|st|nd|rd|th|min|hrs?|[kcm]?[mg]|[kmgt]b|px)$/

/** `h3k9-2mzp`, as recovery codes are: even groups, each of small letters and digits. */
function isOfSmallLetters(text: string, { tokens }: Group): boolean {
  const length = (tokens[0]?.end ?? 0) - (tokens[0]?.start ?? 0)
  if (length < 4 || length > 5 || tokens.length > 4) return false
  return tokens.every(
    ({ start, end, hasDigit, hasLower, hasUpper }) =>
      end - start === length &&
      hasDigit &&
      hasLower &&
      !hasUpper &&
      /^[0-9a-z]+$/.test(text.slice(start, end)) &&
      !quantity.test(text.slice(start, end)),
  )
}

/** Neither a date nor a telephone number. */
function isUneven(lengths: readonly number[], hasUpper: boolean): boolean {
  const total = lengths.reduce((sum, each) => sum + each, 0)
  const isDate =
    !hasUpper && ['4-2-2', '2-2-4', '1-2-4', '2-1-4', '4-1-2', '2-2-2'].includes(lengths.join('-'))
  return (
    !isDate &&
    lengths.length <= 4 &&
    total >= 5 &&
    total <= maxTokenLength &&
    lengths.every((each) => each <= 5)
  )
}

/** `xxxx1234`, as card numbers are shown. */
function isMasked(text: string, token: Token): boolean {
  return /^[xX]{2}/.test(text.slice(token.start, token.start + 2))
}

/** `15h40`, as French and Portuguese have it. */
function isTime(text: string, { start, end }: Token): boolean {
  return end - start === 5 && /^\d\dh\d\d$/.test(text.slice(start, end))
}
