/**
 * Finds the words of several lists in lower-case text, in one pass: at most positions, the first characters exclude
 * every word, by one bit of a table that fits the cache of a processor. A word is also found within a longer one, because many languages build compounds; `^` and `$` bind it to
 * the start or end of a word.
 */
export class Vocabulary<Kind extends string> {
  /** Words by the hash of their first three (or two) characters, the longest first. */
  private readonly lists = new Map<number, Word<Kind>[]>()
  /** A bit for each hash: whether words have it. */
  private readonly isListed = new Uint32Array((MAX_HASH + 1) / 32)

  constructor(lists: Record<Kind, readonly string[]>) {
    for (const kind in lists) for (const word of lists[kind]) this.add(word, kind)
    for (const words of this.lists.values()) {
      words.reverse().sort((one, other) => other.literal.length - one.literal.length)
    }
  }

  /** The longest word at each position, in order. Words may overlap. */
  wordsIn(text: string): Found<Kind>[] {
    const found: Found<Kind>[] = []
    this.scan(text, ({ kind, literal }, start) => found.push({ kind, start, end: start + literal.length }))
    return found
  }

  /** The kinds of words in a text. */
  kindsIn(text: string): Set<Kind> {
    const kinds = new Set<Kind>()
    this.scan(text, ({ kind }) => kinds.add(kind))
    return kinds
  }

  matches(text: string): boolean {
    return this.kindsIn(text).size > 0
  }

  private scan(text: string, use: (word: Word<Kind>, start: number) => void): void {
    let first = text.charCodeAt(0)
    let second = text.charCodeAt(1)
    for (let start = 0; start < text.length - 1; start++) {
      const third = start + 2 < text.length ? text.charCodeAt(start + 2) : 0
      const word =
        this.wordAt(text, start, hashOf(first, second, third)) ??
        (first > LAST_ASCII ? this.wordAt(text, start, hashOf(first, second, 0)) : null)
      if (word !== null) use(word, start)
      first = second
      second = third
    }
  }

  private wordAt(text: string, start: number, beginning: number): Word<Kind> | null {
    if ((((this.isListed[beginning >>> 5] ?? 0) >>> (beginning & 31)) & 1) === 0) return null
    for (const word of this.lists.get(beginning) ?? []) {
      if (!isAt(text, start, word.literal)) continue
      if (word.isBoundAtStart && isLetter(text, start - 1)) continue
      if (word.isBoundAtEnd && isLetter(text, start + word.literal.length)) continue
      return word
    }
    return null
  }

  private add(pattern: string, kind: Kind): void {
    const literal = pattern.replace(/^\^|\$$/g, '')
    const [first, second] = [literal.charCodeAt(0), literal.charCodeAt(1)]
    const third = literal.length > 2 ? literal.charCodeAt(2) : 0
    if (literal.length < 2 || (third === 0 && first <= LAST_ASCII)) {
      throw new Error(`A word of the vocabulary is too short: ${pattern}`)
    }
    const beginning = hashOf(first, second, third)
    this.isListed[beginning >>> 5] = (this.isListed[beginning >>> 5] ?? 0) | (1 << (beginning & 31))
    const word = {
      literal,
      kind,
      isBoundAtStart: pattern.startsWith('^'),
      isBoundAtEnd: pattern.endsWith('$'),
    }
    this.lists.set(beginning, [...(this.lists.get(beginning) ?? []), word])
  }
}

/** A word in a text. `end` is exclusive. */
export interface Found<Kind> {
  kind: Kind
  start: number
  end: number
}

interface Word<Kind> {
  literal: string
  kind: Kind
  isBoundAtStart: boolean
  isBoundAtEnd: boolean
}

const MAX_HASH = 0xffff
/** Words of two ASCII letters are not allowed: they are too common. */
const LAST_ASCII = 0x7f

function hashOf(first: number, second: number, third: number): number {
  return (first * 7_919 + second * 331 + third * 5) & MAX_HASH
}

/** The same as `text.startsWith(literal, start)`, which is slower: a few characters mostly decide. */
function isAt(text: string, start: number, literal: string): boolean {
  if (start + literal.length > text.length) return false
  for (let at = literal.length - 1; at >= 0; at--) {
    if (text.charCodeAt(start + at) !== literal.charCodeAt(at)) return false
  }
  return true
}

function isLetter(text: string, at: number): boolean {
  return /\p{L}/u.test(text.charAt(at))
}

/**
 * Splits lists of words at commas. `{login|access}{_code|_pin}` means every combination; an underscore is a space at
 * the beginning or end of a word.
 */
export function words(lists: string | Record<string, string>): string[] {
  const all = typeof lists === 'string' ? lists : Object.values(lists).join(',')
  return all.split(',').flatMap((word) => combinations(word.trim()).map((each) => each.replaceAll('_', ' ')))
}

function combinations(word: string): string[] {
  const [, before = '', choices, after = ''] = /^([^{]*)\{([^}]*)\}(.*)$/s.exec(word) ?? []
  if (choices === undefined) return [word]
  return choices.split('|').flatMap((choice) => combinations(before + choice.trim() + after))
}
