import { STRONG_WORDS, WEAK_WORDS } from './code-words.js'
import { OTHER_NUMBER_WORDS, PROMOTION_WORDS } from './number-words.js'
import { Vocabulary, type Found } from './vocabulary.js'

/*
 * Whether the words around a number call it a code or another kind of number. All texts here are in lower case.
 */

const MENTION_WORDS = new Vocabulary({
  strong: STRONG_WORDS,
  weak: WEAK_WORDS,
  other: [...OTHER_NUMBER_WORDS, ...PROMOTION_WORDS],
})

/** Words for a number: `strong` ones only name codes, `weak` ones may name a code, `other` ones something else. */
export type Mention = Found<'strong' | 'weak' | 'other'>

const MAX_LABEL_GAP = 40

/** Forms of "to be" between a word and its number. */
const COPULA =
  '(?:is|are|was|reads|lautet|lauten|ist|est|sera|es|será|é|è|este|és|está|är|er|to|jest|je|bude|ez|bedraagt|είναι|это|це|е|هو|هي|است|ہے|है|হল|হলো|คือ|là|adalah|ialah|yra|ir|ni|da|ay)'
/** In Russian and its neighbours, a dash stands for "is". */
export const COPULA_BEFORE = new RegExp(
  `(?:(?<!\\p{L})${COPULA}(?: (?:le|la|el|il))?|[:：=]|[是为為は은는]|(?<=[\\p{Script=Cyrillic}\\d] )[–—])\\s*$`,
  'u',
)
const COPULA_AFTER = new RegExp(`^\\s*(?:[-–—:=]|${COPULA}(?!\\p{L})|[是为為は])`, 'u')

/** Whether a text between a label and a number makes the label name the number: " for your order is ". */
export function endsWithCopula(gap: string): boolean {
  return !/[,;!?]/.test(gap) && COPULA_BEFORE.test(gap)
}

/** Whether a text between a label and a number contains no other word. */
export function isAdjacent(gap: string): boolean {
  return /^\p{L}{0,12}\s*$/u.test(gap)
}

/** Whether a text after a number begins with a verb such as "is". */
export function beginsWithCopula(text: string): boolean {
  return COPULA_AFTER.test(text)
}

/** The label of the number after a text: the last mention that does not belong to another number. */
export function labelBefore(text: string): Mention | null {
  const mentions = mentionsIn(text)
  let next = text.length
  for (const mention of mentions.toReversed()) {
    const isFree = !hasNumberFor(mention.kind, text.slice(mention.end, next))
    if (mention.kind !== 'other') return isFree ? mention : null
    if (isFree) {
      const gap = text.slice(mention.end)
      // "Enter the code to confirm your payment: …" and "your code for the order is …" name a code, although another
      // noun is nearer.
      if (!COPULA_BEFORE.test(gap) || !hasCodeInClause(text, mentions, mention)) {
        const isNamed = gap.length <= MAX_LABEL_GAP && !/[,;!?，。！？；]|\S{3}\. /.test(gap)
        return isNamed ? mention : null
      }
    }
    next = mention.start
  }
  return null
}

/** A mention of a code in the clause after a number: "493201 is your code". */
export function codeMentionAfter(text: string): Mention | null {
  const clause = upTo(text, /[.!?。！？;；|]|\d|\s\(|^[\])]/)
  const mentions = mentionsIn(clause)
  // In "Request 604418: your code is 493201" and "Job 604418 ended with code 1", the words name the second number.
  const gap = clause.slice(mentions.at(-1)?.end)
  if (/\d/.test(text.charAt(clause.length)) && (isAdjacent(gap) || endsWithCopula(gap))) mentions.pop()
  return mentions.find(({ kind }) => kind !== 'other') ?? null
}

function hasCodeInClause(text: string, mentions: readonly Mention[], mention: Mention): boolean {
  return mentions.some(
    ({ kind, end }) =>
      kind !== 'other' && end <= mention.start && !/[.,;!?。，；！？\n]/.test(text.slice(end, mention.start)),
  )
}

// A date, or a year, does not belong to the mention before it.
const DATE =
  /(?<!\d)(?:\d{1,2}[-./]\d{1,2}[-./]\d{2,4}|\d{4}[-./]\d{1,2}[-./]\d{1,2}|\p{L} (?:19|20)\d\d)(?!\d)/gu

/** Whether a text contains a number that a mention of this kind could name. */
function hasNumberFor(kind: Mention['kind'], text: string): boolean {
  if (kind === 'other') return /\d{4}|\d{3}[- ]\d{3}/.test(text)
  const number = /(?<!\d)(?:\d{4,8}|\d{3}[- ]\d{3})(?!\d)/.exec(text.replace(DATE, ''))
  if (number === null) return false
  // In "your code for request id 998877 is 493201" the first number belongs to a word that no list has.
  const gap = text.slice(0, number.index)
  return isAdjacent(gap) || endsWithCopula(gap) || !endsWithCopula(text)
}

const PREPOSITION = ' (?:(?:de|di|da|du|del|della|des) )?'
/** The text between two mentions that are one phrase. Its kind is that of the first mention, unless that is weak. */
const PHRASES: Record<Mention['kind'], Partial<Record<Mention['kind'], RegExp>>> = {
  // "verification code", "one-time sign-in code"
  strong: { weak: /^[^\d.:;]{0,12}$/ },
  // "promo code", "slevový kód"; "card ending in"
  other: { weak: /^\p{L}{0,8}[ -]?$/u },
  // "chód fíoraithe"; "código de pedido"
  weak: { strong: new RegExp(`^${PREPOSITION}$`), other: new RegExp(`^(?:${PREPOSITION})?$`) },
}

function mentionsIn(text: string): Mention[] {
  const mentions: Mention[] = []
  for (const { kind, start, end } of MENTION_WORDS.wordsIn(text)) {
    const previous = mentions.at(-1)
    if (previous !== undefined && end <= previous.end) continue
    if (previous !== undefined && PHRASES[previous.kind][kind]?.test(text.slice(previous.end, start))) {
      if (previous.kind === 'weak') previous.kind = kind
      previous.end = end
    } else mentions.push({ kind, start, end })
  }
  return mentions
}

/** The position after the last end of a sentence; 0 if there is none. */
export function lastSentenceEnd(text: string): number {
  return /^.*(?:[.!?](?=\s)|[。！？])/s.exec(text)?.[0].length ?? 0
}

/** A text up to the first match, or the whole text. */
export function upTo(text: string, stop: RegExp): string {
  const end = text.search(stop)
  return end === -1 ? text : text.slice(0, end)
}

/** Whether a text has neither letters nor digits. */
export function isDecoration(text: string): boolean {
  return !/[\p{L}\p{N}]/u.test(text)
}

const DETERMINER =
  /(?<!\p{L})(?:your|the|this|a|my|new|ihr|ihren|dein|der|den|diesen|votre|le|ce|ton|tu|su|el|este|il|tuo|o|seu|je|uw|de|din) $/u

/** Whether a text ends with a word such as "your", so that what follows is a noun. */
export function endsWithDeterminer(text: string): boolean {
  return DETERMINER.test(textBefore(text, text.length, 10))
}

/** Whether a mention stands without a noun before it: "your code", "enter code", and not "airport code". */
export function isBare(text: string, { start }: Mention): boolean {
  const before = textBefore(text, start, 10)
  return (
    endsWithDeterminer(before) || /(?:^|[^\p{L}\s])\s*$|(?<!\p{L})(?:use|enter|type|with) $/u.test(before)
  )
}

/** At most `length` characters before a position. */
export function textBefore(text: string, at: number, length: number): string {
  return text.slice(Math.max(0, at - length), at)
}
