import { signInWords, strongWords, weakWords } from './code-words.js'
import { approvalWords, neutralWords, otherWords, pastWords } from './number-words.js'
import { Vocabulary, type Found } from './vocabulary.js'

const mentionWords = new Vocabulary({
  strong: strongWords,
  weak: weakWords,
  other: otherWords,
  neutral: neutralWords,
})
const signIns = new Vocabulary({ signIn: signInWords })
const approvals = new Vocabulary({ approval: approvalWords })
const pasts = new Vocabulary({ past: pastWords })

/** Words by which a number near them is understood: surely or perhaps a code, or something else. */
export interface Mention {
  kind: 'strong' | 'weak' | 'other'
  start: number
  end: number
}

/** What the words before a number say of it. */
export interface Reading {
  mention: Mention
  /** Whether other words stand between that may mean the number too. */
  isDisputed: boolean
}

/** Whether lower-cased text speaks of signing in. */
export const isAboutSigningIn = (text: string): boolean => signIns.isIn(text)
/** Whether it speaks of a payment's approval, as receipts do. */
export const isAboutApproval = (text: string): boolean => approvals.isIn(text)
/** Whether it says that something has had its time. */
export const isPast = (text: string): boolean => pasts.isIn(text)

/**
 * How a number behind a stretch of lower-cased text is understood: by the last mention that no other number has
 * taken. "Your code for order 998877 is …" leaves the code free.
 */
export function readBefore(text: string): Reading | null {
  const mentions = mentionsIn(text)
  let next = text.length
  let isDisputed = false
  for (const mention of mentions.reverse()) {
    const isFree = !isTaken(text.slice(mention.end, next), mention.kind)
    if (mention.kind !== 'other') return isFree ? { mention, isDisputed } : null
    if (isFree) {
      const gap = text.slice(mention.end)
      // "Enter the code to confirm your payment: …" speaks of the code all the same.
      const isElsewhere = gap.length > 40 || /[,;!?，。！？；:：\n]|\. /.test(gap.slice(0, 40))
      if (!isElsewhere || !isSameClause(text, mentions, mention)) {
        return isNamed(gap) ? { mention, isDisputed: false } : null
      }
    }
    isDisputed = true
    next = mention.start
  }
  return null
}

/** Characters from a number to the noun for it: " is your Tern ", " — это ваш ". */
const farthestNoun = 20

/** A mention of a code in the same clause, with no other number before it: "493201 is your code". */
export function codeMentionBehind(text: string): Mention | null {
  const stop = text.search(/[.!?。！？;；|]|\d|\s\(|^[\])]/)
  const clause = stop === -1 ? text : text.slice(0, stop)
  const mentions = mentionsIn(clause)
  // "10000 points with promo code": what the words before the number could say must hold behind it too.
  const first = mentions[0]
  if (first !== undefined && first.kind !== 'other' && first.start <= farthestNoun) return first
  return mentions.at(-1)?.kind === 'other' ? null : (mentions.find(({ kind }) => kind !== 'other') ?? null)
}

/** Whether a code is mentioned before `mention` in its clause. */
function isSameClause(text: string, mentions: readonly Mention[], mention: Mention): boolean {
  return mentions.some(
    ({ kind, end }) =>
      kind !== 'other' && end <= mention.start && !/[.,;!?。，；！？\n]/.test(text.slice(end, mention.start)),
  )
}

/** Whether words that name a number are close enough to mean the one behind this gap. */
function isNamed(gap: string): boolean {
  return gap.length <= 40 && !/[,;!?，。！？；]|\S{3}\. /.test(gap)
}

// A day, or a year alone, is what the words before speak of, not what they name.
const day =
  /(?<!\d)(?:\d{1,2}[-./]\d{1,2}[-./]\d{2,4}|\d{4}[-./]\d{1,2}[-./]\d{1,2}|\p{L} (?:19|20)\d\d)(?!\d)/gu

/** By a number that a code could be; a longer one leaves a code free. */
function isTaken(gap: string, kind: Mention['kind']): boolean {
  if (kind === 'other') return /\d{4}|\d{3}[- ]\d{3}/.test(gap)
  return /(?<!\d)\d{4,8}(?!\d)|(?<!\d)\d{3}[- ]\d{3}(?!\d)/.test(gap.replace(day, ''))
}

/** In order, phrases joined: "verification code" is one mention, and so is "promo code". */
function mentionsIn(text: string): Mention[] {
  const mentions: Mention[] = []
  let passed = 0
  for (const { kind, start, end } of mentionWords.wordsIn(text)) {
    if (start < passed) continue
    if (kind === 'neutral') passed = end
    else join(text, mentions, { kind, start, end })
  }
  return mentions
}

// "código de pedido", "kod pocztowy".
const ofWhat = /^ (?:(?:de|di|do|da|du|del|della|des) )?$/
// "slevový kód": the rest of the word, and a space.
const restOfWord = /^\p{L}{0,8}[ -]?$/u

function join(text: string, mentions: Mention[], next: Found<Mention['kind']>): void {
  const previous = mentions.at(-1)
  if (previous === undefined) {
    mentions.push(next)
    return
  }
  const gap = text.slice(previous.end, next.start)
  const isWithin = next.end <= previous.end
  if (isWithin) return
  const isSamePhrase = next.start < previous.end || gap === ''
  if (previous.kind === 'strong' && next.kind === 'weak' && next.start - previous.end <= 12) {
    // As strong as its strongest word.
    previous.end = next.end
  } else if (previous.kind === 'other' && next.kind === 'weak' && (isSamePhrase || restOfWord.test(gap))) {
    previous.end = next.end
  } else if (previous.kind === 'weak' && next.kind === 'strong' && ofWhat.test(gap)) {
    // "do chód fíoraithe"
    previous.kind = 'strong'
    previous.end = next.end
  } else if (previous.kind === 'weak' && next.kind === 'other' && (isSamePhrase || ofWhat.test(gap))) {
    previous.kind = 'other'
    previous.end = next.end
  } else mentions.push(next)
}
