import { beginsWithCopula, COPULA_BEFORE } from './mentions.js'
import { isLetterCode, isUsualCase } from './words.js'

/** Text that has the form of a one-time code. */
export interface Candidate extends Span {
  /** Its range without the brackets, quotation marks or emphasis around it: `[493201]`, `**493201**`. */
  inner: Span
  /** As a user types it: without separators and prefix. */
  value: string
  form: CandidateForm
  /** Whether it is written as other numbers usually are: `#493201`, `493.201`, `KPT-482913`, `RFC 6238`. */
  isUnusualForm: boolean
}

type CandidateForm = 'digits' | 'capitals-and-digits' | 'letters-and-digits' | 'uneven-groups' | 'letters'

const GROUPED_DIGITS = /^(?:\d{3}-\d{3}|\d{4}-\d{4}|\d\d-\d\d-\d\d|\d{3}-\d{3}-\d{3}|\d(?:-\d){3,7})$/

/** Two to four groups of the same length. `ahead` is a condition for each group. */
function evenGroups(character: string, lengths: readonly number[], ahead = ''): RegExp {
  const groups = lengths.map((length) => {
    const each = `${ahead}${character}{${length}}`
    return `${each}(?:-${each}){1,3}`
  })
  return new RegExp(`^(?:${groups.join('|')})$`)
}

/** The forms of codes and of other numbers. The first pattern that matches applies. */
const FORMS: readonly (readonly [CandidateForm | 'none', RegExp, isUnusualForm?: true])[] = [
  // 493201
  ['digits', /^\d{4,8}$/],
  // 493-201, 49-32-01, 4-9-3-2-0-1
  ['digits', GROUPED_DIGITS],
  // 49-32
  ['digits', /^\d\d-\d\d$/, true],
  // A number that is too short or too long for a code
  ['none', /^\d+$/],
  // XXXX1234 is a masked card number, 15h40 a time.
  ['none', /^(?:[xX]{2,}\d+|\d\dh\d\d)$/],
  // X7K9QP
  ['capitals-and-digits', /^(?=[A-Z]*\d)[A-Z\d]{4,10}$/],
  // WDJB-MJHT
  ['letters', evenGroups('[A-Z]', [3, 4, 5])],
  // X7K-9QP, ABC-123
  ['capitals-and-digits', evenGroups('[A-Z\\d]', [3, 4, 5])],
  // G-493201: users don't type the prefix.
  ['digits', /^[A-Z]{1,2}-\d{4,8}$/],
  // KPT-482913, with a reference that is not typed
  ['digits', /^[A-Za-z]{1,4}-\d{4,8}$/, true],
  // 10am-11pm, 20cm-30cm
  ['none', /(?:^|-)\d{1,3}(?:am|pm|st|nd|rd|th|min|hrs?|[kcm]?[mg]|[kmgt]b|px)(?:-|$)/],
  // x7k9qp, x7K9Qp
  ['letters-and-digits', /^(?=[A-Za-z]*\d)[A-Za-z\d]{5,12}$/],
  // x7k9
  ['letters-and-digits', /^(?=[A-Za-z]*\d)[A-Za-z\d]{4}$/, true],
  // h3k9-2mzp, the form of many recovery codes
  ['letters-and-digits', evenGroups('[a-z\\d]', [4, 5], '(?=\\d*[a-z])(?=[a-z]*\\d)')],
  // Dates: 2026-11-21, 21-11-2026, 21-1-2026, 1-11-2026. 1-1-2026 may be another number.
  ['none', /^(?:\d{4}-\d\d?-\d\d|\d\d-\d\d?-\d{4}|\d-\d\d-\d{4})$/],
  // X4-99-ZQ; products and contracts also have such numbers.
  ['uneven-groups', /^(?=[A-Z-]*\d)(?=[A-Z\d](?:-?[A-Z\d]){4,11}$)[A-Z\d]{1,5}(?:-[A-Z\d]{1,5}){1,3}$/],
]
const MAX_LENGTH = 23

const MAX_CANDIDATES = 500

const LETTERS = 'A-Za-zÀ-ÖØ-öø-ԯא-ي'
const HYPHEN = '[-‐-–]'
/** Runs of letters and digits, joined by hyphens. */
const GROUP = new RegExp(`[0-9${LETTERS}]+(?:${HYPHEN}[0-9${LETTERS}]+)*`, 'g')

/** The candidates of a text in order, in linear time. `codes.ts` has converted digits and Latin letters to ASCII. */
export function findCandidates(text: string): Candidate[] {
  const found: Candidate[] = []
  let run: Span[] = []
  for (const { 0: written, index: start } of text.matchAll(GROUP)) {
    const span = { start, end: start + written.length }
    const mayContinue = /^(?:\d+|[A-Z\d]{3,5})$/.test(written)
    if (mayContinue && isSameRun(text, run, span)) {
      run.push(span)
      continue
    }
    addRun(text, run, found)
    run = mayContinue ? [span] : []
    if (found.length >= MAX_CANDIDATES) return found
    if (!mayContinue && written.length > 3) addGroup(text, span, found)
  }
  addRun(text, run, found)
  return found
}

interface Span {
  start: number
  end: number
}

/** What may stand between two groups of digits. */
const SEPARATOR = /^(?: {1,3}|[.·•・⋅—‒―−]| [-–—·•] )$/

/**
 * Whether two groups belong together: of digits, or of as many capitals and digits. Single digits may also be separated
 * by a dash, as in "7 3 0 – 4 1 8", or be below each other, like the cells of some tables.
 */
function isSameRun(text: string, run: readonly Span[], next: Span): boolean {
  const previous = run.at(-1)
  if (previous === undefined || next.start - previous.end > 3) return false
  const between = text.slice(previous.end, next.start)
  const areSingle = previous.end - previous.start === 1 && next.end - next.start === 1
  if (areSingle && /^\s*[-–]?\s*$/.test(between)) return true
  if (!SEPARATOR.test(between)) return false
  const isSameLength = next.end - next.start === previous.end - previous.start
  return (
    !/[A-Z]/.test(text.slice(previous.start, next.end)) ||
    (isSameLength && areCodeLike(text, [previous, next]))
  )
}

const DATE = /^(?:0[1-9]|[12]\d|3[01])\.(?:0[1-9]|1[0-2])\.\d\d$/

function addRun(text: string, run: readonly Span[], found: Candidate[]): void {
  const [first, second] = run
  const last = run.at(-1)
  if (first === undefined || last === undefined) return
  if (second !== undefined) {
    const span = { start: first.start, end: last.end }
    const written = text.slice(span.start, span.end)
    if (/[A-Z]/.test(written)) {
      add(text, span, 'uneven-groups', false, found)
      return
    }
    const groups = written.replace(/\D+/g, '-')
    const hasSpaces = /\d\s/.test(written)
    if ((GROUPED_DIGITS.test(groups) && !DATE.test(written)) || /^\d\d-\d\d$/.test(groups)) {
      add(text, span, 'digits', !hasSpaces, found)
      return
    }
    // Phone, card and account numbers: three or more groups of other lengths, or a leading zero.
    if (hasSpaces && (run.length > 2 || written.startsWith('0'))) return
  }
  for (const span of run) if (found.length < MAX_CANDIDATES) addGroup(text, span, found)
}

/** Whether groups of capitals and digits are no words, and not all of them letters. */
function areCodeLike(text: string, groups: readonly Span[]): boolean {
  const written = groups.map(({ start, end }) => text.slice(start, end))
  return (
    written.some((group) => /\d/.test(group)) &&
    written.every((group) => /\d/.test(group) || isLetterCode(group))
  )
}

function addGroup(text: string, span: Span, found: Candidate[]): void {
  if (span.end - span.start > MAX_LENGTH || span.end - span.start < 4) return
  const group = text.slice(span.start, span.end)
  if (/^[A-Za-z]+$/.test(group)) {
    if (!isLetterCode(group) || NUMBER_AFTER.test(text.slice(span.end, span.end + 8))) return
    if (!isUsualCase(group) || mayBeNamed(text, span)) add(text, span, 'letters', false, found)
    return
  }
  const written = group.replace(/[‐-–]/g, '-')
  const [form, , isUnusualForm = false] = FORMS.find(([, pattern]) => pattern.test(written)) ?? ['none']
  if (form !== 'none') add(text, span, form, isUnusualForm, found)
}

// "kptx 482913", "KPTX: 482913": the letters are a reference.
const NUMBER_AFTER = /^:? ?\d{4}/

// "Your confirmation code xkqwzt", but not "Confirmation code Example"
const CODE_BEFORE = /(?:[ck][oó]d\p{L}{0,4}|otp|pin|tan|token) $/u

/**
 * Whether letters in usual case are alone, in a list, after a word such as "code", or beside a verb such as "is". Most
 * of them are words.
 */
function mayBeNamed(text: string, { start, end }: Span): boolean {
  const before = text.slice(Math.max(0, start - 20), start).toLowerCase()
  const after = text.slice(end, end + 20).toLowerCase()
  return (
    /(?:^|[^\p{L}\p{N}\s]|\n)\s*$/u.test(before) ||
    (CODE_BEFORE.test(before) && /[a-z]/.test(text.charAt(start))) ||
    COPULA_BEFORE.test(before) ||
    beginsWithCopula(after)
  )
}

const BRACKETS = new Set(
  '() [] {} <> «» »« ‹› ›‹ “” „“ „” ”” ‘’ "" \'\' `` ** __ ~~ || 【】 「」 『』 （） ［］ 〔〕 《》 〈〉'.split(
    ' ',
  ),
)

// A reference that is not typed, or the name of another kind of number: "KPT 482913", "RFC 6238", "CA 94107"
const ABBREVIATION = /(?<![\p{L}\p{N}])\p{Lu}{2,5} $/u
const CODE_ABBREVIATIONS = new Set('OTP PIN TAN TAC CODE KOD KODE COD MFA TOTP MTAN SMS IS BE'.split(' '))

function add(
  text: string,
  span: Span,
  form: CandidateForm,
  isUnusualForm: boolean,
  found: Candidate[],
): void {
  let { start, end } = span
  const abbreviation =
    form === 'digits' ? ABBREVIATION.exec(text.slice(Math.max(0, start - 7), start))?.[0] : undefined
  if (text.charAt(start - 1) === '#') start--
  else if (abbreviation !== undefined && !CODE_ABBREVIATIONS.has(abbreviation.trim()))
    start -= abbreviation.length
  const hasMark = start < span.start
  while (BRACKETS.has(text.charAt(start - 1) + text.charAt(end)) && end - span.end < 6) {
    start--
    end++
  }
  if (!isStandalone(text, { start, end })) return
  const value = text.slice(span.start, span.end).replace(form === 'digits' ? /\D/g : /[^0-9A-Za-z]/g, '')
  found.push({ start, end, inner: span, value, form, isUnusualForm: isUnusualForm || hasMark })
}

const JOINED_BEFORE = /(?:[#$€£¥₹₽₩+/\\@_=&?%•‐-–-]|[0-9A-Za-z][.,]|\d:|\*\*\*)$/
const JOINED_AFTER = /^(?:[#%€£¥₹₽₩$@/\\_=°‐-–-]|[.,:][0-9a-z])/
// "OTP=493201", but not a parameter of a URL.
const ASSIGNED = /(?<![A-Za-z?&])(?:OTP|PIN|TAN|CODE)=$/i
// "661823,5分钟内有效": an ASCII comma, and then the time for which the code is valid.
const VALIDITY = /^[.,]\d{1,3} ?(?:分|秒|小时|小時|時間|天|日|초|시간)/

/** Whether the text is not part of a longer number, a price, an address, a path, a color or a time. */
function isStandalone(text: string, { start, end }: Span): boolean {
  const before = text.slice(Math.max(0, start - 7), start)
  const after = text.slice(end, end + 8)
  if (JOINED_BEFORE.test(before) && !ASSIGNED.test(before)) return false
  if (JOINED_AFTER.test(after) && !VALIDITY.test(after)) return false
  // Emphasis has a star on both sides, a number to dial on one side.
  return !before.endsWith('*') || after.startsWith('*')
}
