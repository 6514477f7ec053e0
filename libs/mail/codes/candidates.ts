/** Text that has the form of a one-time code. */
export interface Candidate {
  start: number
  end: number
  /** As a user types it: without separators and prefix. */
  value: string
  form: CandidateForm
}

type CandidateForm = 'digits' | 'capitals-and-digits' | 'letters-and-digits' | 'uneven-groups' | 'capitals'

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
const FORMS: readonly (readonly [CandidateForm | 'none', RegExp])[] = [
  // 493201
  ['digits', /^\d{4,8}$/],
  // 493-201, 49-32-01, 4-9-3-2-0-1
  ['digits', GROUPED_DIGITS],
  // A number that is too short or too long for a code
  ['none', /^\d+$/],
  // G-493201: users don't type the prefix.
  ['digits', /^[A-Z]{1,2}-\d{4,8}$/],
  ['none', /^[A-Z]{1,2}-\d+$/],
  // XXXX1234 is a masked card number, 15h40 a time.
  ['none', /^(?:[xX]{2,}\d+|\d\dh\d\d)$/],
  // X7K9QP
  ['capitals-and-digits', /^(?=[A-Z]*\d)[A-Z\d]{4,10}$/],
  // WDJB-MJHT
  ['capitals', evenGroups('[A-Z]', [3, 4, 5])],
  // X7K-9QP, ABC-123
  ['capitals-and-digits', evenGroups('[A-Z\\d]', [3, 4, 5])],
  // x7k9qp, x7K9Qp
  ['letters-and-digits', /^(?=[A-Za-z]*\d)[A-Za-z\d]{5,12}$/],
  // 10am-11pm, 20cm-30cm
  ['none', /(?:^|-)\d{1,3}(?:am|pm|st|nd|rd|th|min|hrs?|[kcm]?[mg]|[kmgt]b|px)(?:-|$)/],
  // h3k9-2mzp, the form of many recovery codes
  ['letters-and-digits', evenGroups('[a-z\\d]', [4, 5], '(?=\\d*[a-z])(?=[a-z]*\\d)')],
  // Dates: 2026-11-21, 21-11-2026, 21-1-2026, 1-11-2026. 1-1-2026 may be another number.
  ['none', /^(?:\d{4}-\d\d?-\d\d|\d\d-\d\d?-\d{4}|\d-\d\d-\d{4})$/],
  // X4-99-ZQ; products and contracts also have such numbers.
  ['uneven-groups', /^(?=[A-Z-]*\d)(?=[A-Z\d](?:-?[A-Z\d]){4,11}$)[A-Z\d]{1,5}(?:-[A-Z\d]{1,5}){1,3}$/],
  // WXRKTZ
  ['capitals', /^[A-Z]{5,10}$/],
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
    const isDigits = /^\d+$/.test(written)
    const previous = run.at(-1)
    if (isDigits && previous !== undefined && isSameRun(text, previous, span)) {
      run.push(span)
      continue
    }
    addRun(text, run, found)
    run = isDigits ? [span] : []
    if (found.length >= MAX_CANDIDATES) return found
    if (!isDigits) addGroup(text, span, found)
  }
  addRun(text, run, found)
  return found
}

interface Span {
  start: number
  end: number
}

/**
 * Whether two groups of digits belong together. Groups are one space apart. Single digits may also be separated by a
 * dash, as in "7 3 0 – 4 1 8", or be below each other, like the cells of some tables.
 */
function isSameRun(text: string, previous: Span, next: Span): boolean {
  if (next.start - previous.end > 3) return false
  const between = text.slice(previous.end, next.start)
  if (between === ' ' || between === '\u00a0') return true
  const areSingle = previous.end - previous.start === 1 && next.end - next.start === 1
  return areSingle && /^\s*[-–]?\s*$/.test(between)
}

function addRun(text: string, run: readonly Span[], found: Candidate[]): void {
  const [first] = run
  const last = run.at(-1)
  if (first === undefined || last === undefined) return
  if (run.length > 1) {
    const digits = text.slice(first.start, last.end).replace(/\D+/g, '-')
    if (GROUPED_DIGITS.test(digits)) {
      add(text, { start: first.start, end: last.end }, 'digits', found)
      return
    }
    // Phone, card and account numbers: three or more groups of other lengths, or two after a plus or a leading zero.
    const isLong = last.end - first.start > 7
    if (
      run.length > 2 ||
      text.charAt(first.start - 1) === '+' ||
      (text.charAt(first.start) === '0' && isLong)
    )
      return
  }
  for (const span of run) addGroup(text, span, found)
}

function addGroup(text: string, span: Span, found: Candidate[]): void {
  if (span.end - span.start > MAX_LENGTH) return
  const written = text.slice(span.start, span.end).replace(/[‐-–]/g, '-')
  if (!/\d|^[A-Z-]{5,}$/.test(written)) return
  const form = FORMS.find(([, pattern]) => pattern.test(written))?.[0] ?? 'none'
  if (form !== 'none') add(text, span, form, found)
}

function add(text: string, { start, end }: Span, form: CandidateForm, found: Candidate[]): void {
  if (!isStandalone(text, start, end)) return
  const value = text.slice(start, end).replace(form === 'digits' ? /\D/g : /[^0-9A-Za-z]/g, '')
  found.push({ start, end, value, form })
}

const JOINED_BEFORE = /(?:[#$€£¥₹₽₩+/\\@_=&?%•‐-–-]|[0-9A-Za-z][.,]|\d:|\*\*\*)$/
const JOINED_AFTER = /^(?:[#%€£¥₹₽₩$@/\\_=°‐-–-]|[.,:][0-9a-z])/
// "OTP=493201", but not a parameter of a URL.
const ASSIGNED = /(?<![A-Za-z?&])(?:OTP|PIN|TAN|CODE)=$/i
// "661823,5分钟内有效": an ASCII comma, and then the time for which the code is valid.
const VALIDITY = /^[.,]\d{1,3}[ \u00a0]?(?:分|秒|小时|小時|時間|天|日|초|시간)/

/** Whether the text is not part of a longer number, a price, an address, a path, a color or a time. */
function isStandalone(text: string, start: number, end: number): boolean {
  const before = text.slice(Math.max(0, start - 7), start)
  const after = text.slice(end, end + 8)
  if (JOINED_BEFORE.test(before) && !ASSIGNED.test(before)) return false
  if (JOINED_AFTER.test(after) && !VALIDITY.test(after)) return false
  // Emphasis has a star on both sides, a number to dial on one side.
  return !before.endsWith('*') || after.startsWith('*')
}
