import { otherWords, strongWords, topicWords, weakWords } from './code-words.js'

const strong = new RegExp(strongWords.join('|'), 'g')
const weak = new RegExp(weakWords.join('|'), 'g')
const other = new RegExp(otherWords.join('|'), 'g')

const topic = new RegExp([...strongWords, ...weakWords, ...topicWords].join('|'))

export interface Mention {
  kind: 'strong' | 'weak' | 'other'
  start: number
  end: number
}

/** The last mention in a stretch of lower-cased text that a number behind it would be understood by. */
export function lastMention(text: string): Mention | null {
  const competing = last(text, other)
  const plain = last(text, weak)
  const certain = last(text, strong)
  let mention = certain === null ? null : toMention('strong', certain)
  if (plain !== null && (mention === null || plain.end > mention.end)) {
    // "verification code" is one mention, as strong as its strongest word.
    const isSamePhrase = mention !== null && plain.start - mention.end <= 12
    mention = toMention(isSamePhrase ? 'strong' : 'weak', plain)
  }
  // "promo code" ends where "code" does: the narrower word wins.
  if (competing !== null && (mention === null || competing.end >= mention.end))
    return toMention('other', competing)
  return mention
}

/** The first mention of a code; what else is mentioned doesn't matter. */
export function firstCodeMention(text: string): Mention | null {
  const certain = first(text, strong)
  const plain = first(text, weak)
  if (certain === null) return plain === null ? null : toMention('weak', plain)
  return toMention('strong', certain)
}

/** Whether a lower-cased text is about signing in, confirming or codes at all. */
export function isAboutCodes(text: string): boolean {
  return topic.test(text)
}

interface Span {
  start: number
  end: number
}

function toMention(kind: Mention['kind'], { start, end }: Span): Mention {
  return { kind, start, end }
}

function first(text: string, words: RegExp): Span | null {
  words.lastIndex = 0
  const match = words.exec(text)
  return match === null ? null : { start: match.index, end: words.lastIndex }
}

function last(text: string, words: RegExp): Span | null {
  let span: Span | null = null
  words.lastIndex = 0
  for (let match = words.exec(text); match !== null; match = words.exec(text)) {
    span = { start: match.index, end: words.lastIndex }
  }
  return span
}
