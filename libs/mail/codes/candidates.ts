/** Text in the form of a one-time code, wherever it stands. */
export interface Candidate {
  start: number
  end: number
  /** Without separators and prefix. */
  value: string
  form: CandidateForm
}

type CandidateForm = 'digits' | 'capitals-and-digits' | 'letters-and-digits' | 'uneven-groups' | 'capitals'

const groupedDigits = /^(?:999-999|9999-9999|99-99-99|999-999-999|9(?:-9){3,7})$/
const smallLetters = (length: number) => `(?=9*a)(?=a*9)[9a]{${length}}`

/** The forms of codes, first match first, as shapes: `9` is a digit, `A` a capital, `a` a small letter. */
const forms: readonly (readonly [CandidateForm | null, RegExp])[] = [
  // 493201
  ['digits', /^9{4,8}$/],
  // 493-201, 49-32-01, 4-9-3-2-0-1
  ['digits', groupedDigits],
  // G-493201: the prefix is not typed.
  ['digits', /^A{1,2}-9{4,8}$/],
  [null, /^A{1,2}-9+$/],
  // X7K9QP
  ['capitals-and-digits', /^(?=A*9)(?=9*A)[9A]{4,10}$/],
  // X7K-9QP, ABC-123
  [
    'capitals-and-digits',
    /^(?=[A-]*9)(?:[9A]{3}(?:-[9A]{3}){1,3}|[9A]{4}(?:-[9A]{4}){1,3}|[9A]{5}(?:-[9A]{5}){1,3})$/,
  ],
  // x7k9qp, x7K9Qp
  ['letters-and-digits', /^(?=[Aa]*9)(?=[9A]*a)[9Aa]{5,12}$/],
  // h3k9-2mzp, as recovery codes are
  [
    'letters-and-digits',
    new RegExp(`^(?:${[4, 5].map((n) => `${smallLetters(n)}(?:-${smallLetters(n)}){1,3}`).join('|')})$`),
  ],
  // Dates: 2026-11-21, 21-11-2026
  [null, /^(?:9999-99?-99|99-99?-9999|9-99-9999)$/],
  // X4-99-ZQ; articles and contracts have such numbers too.
  ['uneven-groups', /^(?=[A-]*9)(?=[9A](?:-?[9A]){4,11}$)[9A]{1,5}(?:-[9A]{1,5}){1,3}$/],
  // WXRKTZ
  ['capitals', /^A{5,10}$/],
  // WDJB-MJHT
  ['capitals', /^(?:A{3}(?:-A{3}){1,3}|A{4}(?:-A{4}){1,3}|A{5}(?:-A{5}){1,3})$/],
]
const maxShape = 23

// XXXX1234 and xxxx1234 are masked cards, 15h40 is a time, 10am-11pm are hours.
const notCodes = [
  /^[xX]{2,}\d+$/,
  /^\d\dh\d\d$/,
  /(?:^|-)\d{1,3}(?:am|pm|st|nd|rd|th|min|hrs?|[kcm]?[mg]|[kmgt]b|px)(?:-|$)/,
]

const maxCandidates = 500

const letters = 'A-Za-zÀ-ÖØ-öø-ԯא-ي'
const hyphen = '[-‐-–]'
/** Runs of letters and digits, joined by hyphens. */
const group = new RegExp(`[0-9${letters}]+(?:${hyphen}[0-9${letters}]+)*`, 'g')

/** In one pass, in order. Every digit and Latin letter of the text is ASCII (`searchedText`). */
export function findCandidates(text: string): Candidate[] {
  const found: Candidate[] = []
  let run: Span[] = []
  for (const { 0: word, index: start } of text.matchAll(group)) {
    const span = { start, end: start + word.length }
    const isDigits = /^\d+$/.test(word)
    const previous = run.at(-1)
    if (isDigits && previous !== undefined && continues(text, previous, span)) {
      run.push(span)
      continue
    }
    addRun(text, run, found)
    run = isDigits ? [span] : []
    if (found.length >= maxCandidates) return found
    if (!isDigits) addGroup(text, span, found)
  }
  addRun(text, run, found)
  return found
}

interface Span {
  start: number
  end: number
}

/** Groups of digits one space apart; single digits also "7 3 0 – 4 1 8", and below each other, as cells often are. */
function continues(text: string, previous: Span, next: Span): boolean {
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
    const shape = run.map(({ start, end }) => '9'.repeat(Math.min(end - start, 9))).join('-')
    if (groupedDigits.test(shape)) {
      add(text, { start: first.start, end: last.end }, 'digits', found)
      return
    }
    // Phone, card and account numbers: other groups, three or more of them, or two behind a plus or from a zero.
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
  if (span.end - span.start > maxShape) return
  const word = text.slice(span.start, span.end)
  if (!/\d|^[A-Z-]+$/.test(word)) return
  const shape = word
    .replace(/[^0-9a-zA-Z]/g, (c) => (/\p{L}/u.test(c) ? '?' : '-'))
    .replace(/\d/g, '9')
    .replace(/[A-Z]/g, 'A')
    .replace(/[a-z]/g, 'a')
  const form = forms.find(([, pattern]) => pattern.test(shape))?.[0] ?? null
  if (form !== null && !notCodes.some((pattern) => pattern.test(word))) add(text, span, form, found)
}

function add(text: string, { start, end }: Span, form: CandidateForm, found: Candidate[]): void {
  if (!standsByItself(text, start, end)) return
  const written = text.slice(start, end)
  const value = written.replace(/[^0-9A-Za-z]/g, '')
  found.push({ start, end, value: form === 'digits' ? value.replace(/\D/g, '') : value, form })
}

const joinedBefore = /(?:[#$€£¥₹₽₩+/\\@_=&?%•‐-–-]|[0-9A-Za-z][.,]|\d:|\*\*\*)$/
const joinedBehind = /^(?:[#%€£¥₹₽₩$@/\\_=°‐-–-]|[.,:][0-9a-z])/
// "OTP=493201", but not the parameter of an address.
const assigned = /(?<![A-Za-z?&])(?:OTP|PIN|TAN|CODE)=$/i
// "661823,5分钟内有效": a comma of ASCII, and how long the code is valid.
const validity = /^[.,]\d{1,3}[ \u00a0]?(?:分|秒|小时|小時|時間|天|日|초|시간)/

/** Whether it is no piece of a number, a price, an address, a path, a color or a time. */
function standsByItself(text: string, start: number, end: number): boolean {
  const before = text.slice(Math.max(0, start - 7), start)
  const behind = text.slice(end, end + 8)
  if (joinedBefore.test(before) && !assigned.test(before)) return false
  if (joinedBehind.test(behind) && !validity.test(behind)) return false
  // Emphasis stands on both sides, a star to be dialed on one.
  return !before.endsWith('*') || behind.startsWith('*')
}
