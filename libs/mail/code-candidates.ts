import { groups, isHyphen, type Group, type Token } from './code-tokens.js'

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

/** Fullwidth and Arabic-Indic characters as ASCII, one for one, so that positions stay. */
export function plainCharacters(text: string): string {
  return text.replace(
    /[\u0660-\u0669\u06f0-\u06f9\uff10-\uff19\uff21-\uff3a\uff41-\uff5a\uff0d]/g,
    (character) => {
      const code = character.charCodeAt(0)
      if (code >= 0xff00) return String.fromCharCode(code - 0xfee0)
      return String.fromCharCode(0x30 + (code & 0x0f))
    },
  )
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
  return areSingle(previous, next) && between.trim() === ''
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
    if (first.hasLower) return length >= 5 && !isMasked(text, first) ? 'letters-and-digits' : null
    if (first.hasUpper) return length >= 4 && length <= 10 ? 'capitals-and-digits' : null
    return length >= 4 && length <= 8 ? 'digits' : null
  }
  if (group.tokens.some((token) => token.hasLower)) return null
  if (!hasUpper) return isShapeOfCode(lengths) ? 'digits' : null
  const [, secondLength = 0] = lengths
  const isPrefixed = lengths.length === 2 && length <= 2 && !first.hasDigit && !second.hasUpper
  if (isPrefixed) return secondLength >= 4 && secondLength <= 8 ? 'digits' : null
  const isEven = length >= 3 && length <= 5 && lengths.length <= 4 && lengths.every((each) => each === length)
  if (!isEven) return null
  return hasDigit ? 'capitals-and-digits' : 'capitals'
}

/** `xxxx1234`, as card numbers are shown. */
function isMasked(text: string, token: Token): boolean {
  return /^[xX]{2}/.test(text.slice(token.start, token.start + 2))
}

const closedBefore = new Set('#$€£¥₹₽₩+/\\@_=&?%•')
const closedAfter = new Set('#%€£¥₹₽₩$@/\\_=°')

/** Whether it stands by itself, not as a piece of a number, a price, an address, a path, a colour or a time. */
function hasOpenEdges(text: string, start: number, end: number): boolean {
  const before = text.charAt(start - 1)
  const after = text.charAt(end)
  if (closedBefore.has(before) || closedAfter.has(after)) return false
  if (isHyphen(before.charCodeAt(0)) || isHyphen(after.charCodeAt(0))) return false
  if ('.,:'.includes(before) && /[0-9A-Za-z]/.test(text.charAt(start - 2)) && before !== '')
    return isLabel(text, start)
  if ('.,:'.includes(after) && after !== '' && /[0-9a-z]/.test(text.charAt(end + 1))) return false
  // Emphasis stands on both sides, a star to be dialled on one.
  if (before === '*' && after !== '*') return false
  return text.slice(start - 3, start) !== '***'
}

/** `code:493201` is a label; `12:4932` and `a.4932` are not. */
function isLabel(text: string, start: number): boolean {
  return text.charAt(start - 1) === ':' && /[A-Za-z]/.test(text.charAt(start - 2))
}
