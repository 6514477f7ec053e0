import { strongWords, weakWords } from './code-words.js'
import { neutralWords, otherNumberWords, promotionWords } from './number-words.js'
import { Vocabulary, type Found } from './vocabulary.js'

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
