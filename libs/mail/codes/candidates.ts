import { strongWords, weakWords } from './code-words.js'
import { neutralWords, otherNumberWords, promotionWords } from './number-words.js'
import { Vocabulary, type Found } from './vocabulary.js'

/** Text in the form of a one-time code, wherever it stands. */
export interface Candidate {
  start: number
  end: number
  /** Without separators and prefix. */
  value: string
  form: CandidateForm
}

type CandidateForm = 'digits' | 'capitals-and-digits' | 'letters-and-digits' | 'uneven-groups' | 'capitals'

const groupedDigits = /^(?:\d{3}-\d{3}|\d{4}-\d{4}|\d\d-\d\d-\d\d|\d{3}-\d{3}-\d{3}|\d(?:-\d){3,7})$/

/** Two to four groups of one length. */
function evenGroups(character: string, lengths: readonly number[], ahead = ''): RegExp {
  const groups = lengths.map((length) => {
    const each = `${ahead}${character}{${length}}`
    return `${each}(?:-${each}){1,3}`
  })
  return new RegExp(`^(?:${groups.join('|')})$`)
}

/** The forms of codes; the first that matches counts. */
const forms: readonly (readonly [CandidateForm | 'none', RegExp])[] = [
  // 493201
  ['digits', /^\d{4,8}$/],
  // 493-201, 49-32-01, 4-9-3-2-0-1
  ['digits', groupedDigits],
  // A number too short or too long for a code
  ['none', /^\d+$/],
  // G-493201: the prefix is not typed.
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
  // h3k9-2mzp, as recovery codes are
  ['letters-and-digits', evenGroups('[a-z\\d]', [4, 5], '(?=\\d*[a-z])(?=[a-z]*\\d)')],
  // 2026-11-21, 21-11-2026, 21-1-2026, 1-11-2026; 1-1-2026 may be the number of a shelf.
  ['none', /^(?:\d{4}-\d\d?-\d\d|\d\d-\d\d?-\d{4}|\d-\d\d-\d{4})$/],
  // X4-99-ZQ; articles and contracts have such numbers too.
  ['uneven-groups', /^(?=[A-Z-]*\d)(?=[A-Z\d](?:-?[A-Z\d]){4,11}$)[A-Z\d]{1,5}(?:-[A-Z\d]{1,5}){1,3}$/],
  // WXRKTZ
  ['capitals', /^[A-Z]{5,10}$/],
]
const maxLength = 23

const maxCandidates = 500

const letters = 'A-Za-zÀ-ÖØ-öø-ԯא-ي'
const hyphen = '[-‐-–]'
/** Runs of letters and digits, joined by hyphens. */
const group = new RegExp(`[0-9${letters}]+(?:${hyphen}[0-9${letters}]+)*`, 'g')

/** In one pass, in order. Every digit and Latin letter of the text is ASCII (`searchedText`). */
export function findCandidates(text: string): Candidate[] {
  const found: Candidate[] = []
  let run: Span[] = []
  for (const { 0: written, index: start } of text.matchAll(group)) {
    const span = { start, end: start + written.length }
    const isDigits = /^\d+$/.test(written)
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
    const digits = text.slice(first.start, last.end).replace(/\D+/g, '-')
    if (groupedDigits.test(digits)) {
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
  if (span.end - span.start > maxLength) return
  const written = text.slice(span.start, span.end).replace(/[‐-–]/g, '-')
  if (!/\d|^[A-Z-]{5,}$/.test(written)) return
  const form = forms.find(([, pattern]) => pattern.test(written))?.[0] ?? 'none'
  if (form !== 'none') add(text, span, form, found)
}

function add(text: string, { start, end }: Span, form: CandidateForm, found: Candidate[]): void {
  if (!standsByItself(text, start, end)) return
  const value = text.slice(start, end).replace(form === 'digits' ? /\D/g : /[^0-9A-Za-z]/g, '')
  found.push({ start, end, value, form })
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

const mentionWords = new Vocabulary({
  strong: strongWords,
  weak: weakWords,
  other: [...otherNumberWords, ...promotionWords],
  neutral: neutralWords,
})

/** Words for a number near them: surely a code, perhaps a code, or something else. */
export type Mention = Found<'strong' | 'weak' | 'other'>

/** What the words before a number name it. */
export interface Naming {
  mention: Mention
  /** Whether words between may mean the number too: "your code for order …". */
  isDisputed: boolean
}

const maxNamingGap = 40

/** What lower-cased text names the number behind it: its last mention that no other number has taken. */
export function namingBefore(text: string): Naming | null {
  const mentions = mentionsIn(text)
  let next = text.length
  let isDisputed = false
  for (const mention of mentions.toReversed()) {
    const isFree = !isTaken(text.slice(mention.end, next), mention.kind)
    if (mention.kind !== 'other') return isFree ? { mention, isDisputed } : null
    if (isFree) {
      const gap = text.slice(mention.end)
      // "Enter the code to confirm your payment: …" is about the code all the same.
      const isElsewhere =
        gap.length > maxNamingGap || /[,;!?，。！？；:：\n]|\. /.test(gap.slice(0, maxNamingGap))
      if (!isElsewhere || !hasCodeInClause(text, mentions, mention)) {
        const isNamed = gap.length <= maxNamingGap && !/[,;!?，。！？；]|\S{3}\. /.test(gap)
        return isNamed ? { mention, isDisputed: false } : null
      }
    }
    isDisputed = true
    next = mention.start
  }
  return null
}

/** Characters from a number to the noun for it: " is your Tern ", " — это ваш ". */
const maxNounGap = 20

/** A mention of a code in the clause behind a number: "493201 is your code". */
export function codeMentionBehind(text: string): Mention | null {
  const mentions = mentionsIn(upTo(text, /[.!?。！？;；|]|\d|\s\(|^[\])]/))
  const [first] = mentions
  if (first !== undefined && first.kind !== 'other' && first.start <= maxNounGap) return first
  // "10000 points with promo code"
  return mentions.at(-1)?.kind === 'other' ? null : (mentions.find(({ kind }) => kind !== 'other') ?? null)
}

function hasCodeInClause(text: string, mentions: readonly Mention[], mention: Mention): boolean {
  return mentions.some(
    ({ kind, end }) =>
      kind !== 'other' && end <= mention.start && !/[.,;!?。，；！？\n]/.test(text.slice(end, mention.start)),
  )
}

// A day, or a year alone, is not named by the words before it.
const day =
  /(?<!\d)(?:\d{1,2}[-./]\d{1,2}[-./]\d{2,4}|\d{4}[-./]\d{1,2}[-./]\d{1,2}|\p{L} (?:19|20)\d\d)(?!\d)/gu

/** Whether a number stands in a gap that a mention could mean: for a code, one that could be a code. */
function isTaken(gap: string, kind: Mention['kind']): boolean {
  if (kind === 'other') return /\d{4}|\d{3}[- ]\d{3}/.test(gap)
  return /(?<!\d)\d{4,8}(?!\d)|(?<!\d)\d{3}[- ]\d{3}(?!\d)/.test(gap.replace(day, ''))
}

const ofWhat = ' (?:(?:de|di|do|da|du|del|della|des) )?'
/** Which mentions are one phrase, by the text between them. Its kind is that of the first that is not weak. */
const phrases: Record<Mention['kind'], Partial<Record<Mention['kind'], RegExp>>> = {
  // "verification code", "one-time sign-in code"
  strong: { weak: /^.{0,12}$/s },
  // "promo code", "slevový kód"; "card ending in"
  other: { weak: /^\p{L}{0,8}[ -]?$/u, other: /^$/ },
  // "chód fíoraithe"; "código de pedido"
  weak: { strong: new RegExp(`^${ofWhat}$`), other: new RegExp(`^(?:${ofWhat})?$`) },
}

function mentionsIn(text: string): Mention[] {
  const mentions: Mention[] = []
  let passed = 0
  for (const { kind, start, end } of mentionWords.wordsIn(text)) {
    const previous = mentions.at(-1)
    if (start < passed || (previous !== undefined && end <= previous.end)) continue
    if (kind === 'neutral') passed = end
    else if (previous !== undefined && phrases[previous.kind][kind]?.test(text.slice(previous.end, start))) {
      if (previous.kind === 'weak') previous.kind = kind
      previous.end = end
    } else mentions.push({ kind, start, end })
  }
  return mentions
}

/** Just past the last end of a sentence; 0 for none. */
export function lastSentenceEnd(text: string): number {
  let last = 0
  for (const match of text.matchAll(/[.!?](?=\s)|[。！？]/g)) last = match.index + 1
  return last
}

/** A text up to the first match, or all of it. */
export function upTo(text: string, stop: RegExp): string {
  const end = text.search(stop)
  return end === -1 ? text : text.slice(0, end)
}

/** Whether it has neither letters nor digits. */
export function isDecoration(text: string): boolean {
  return !/[\p{L}\p{N}]/u.test(text)
}
