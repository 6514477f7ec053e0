/**
 * Finds the words of several lists in lower-cased text, in one pass: a tree of characters holds them all, so that
 * a look at each place costs the same whatever their number. A word counts anywhere within another, because many
 * languages build compounds; `^` and `$` bind it to the start or end of a word.
 */
export class Vocabulary<Kind extends string> {
  private readonly root: Branch<Kind> = { words: [], next: new Map() }
  /** Hashes of the first three characters of each word, or two: most places in a text are passed over by this. */
  private readonly beginnings = new Uint8Array(maxHash + 1)

  constructor(lists: Record<Kind, readonly string[]>) {
    for (const kind in lists) for (const word of lists[kind]) this.add(word, kind)
  }

  /** The longest word at each place, in order of where they start. They may overlap. */
  wordsIn(text: string): Found<Kind>[] {
    const found: Found<Kind>[] = []
    let first = text.charCodeAt(0)
    let second = text.charCodeAt(1)
    for (let start = 0; start < text.length - 1; start++) {
      const third = start + 2 < text.length ? text.charCodeAt(start + 2) : 0
      const mayBegin =
        this.beginnings[hashOf(first, second, third)] === 1 ||
        (first > lastAscii && this.beginnings[hashOf(first, second, 0)] === 1)
      if (mayBegin) {
        const word = this.wordAt(text, start)
        if (word !== null) found.push({ kind: word.kind, start, end: start + word.literal.length })
      }
      first = second
      second = third
    }
    return found
  }

  /** The kinds of word that a text has. */
  kindsIn(text: string): Set<Kind> {
    return new Set(this.wordsIn(text).map(({ kind }) => kind))
  }

  isIn(text: string): boolean {
    return this.wordsIn(text).length > 0
  }

  private wordAt(text: string, start: number): Word<Kind> | null {
    let longest: Word<Kind> | null = null
    let branch: Branch<Kind> | undefined = this.root
    for (let at = start; branch !== undefined; at++) {
      for (const word of branch.words) {
        if (word.isBoundBefore && isLetter(text, start - 1)) continue
        if (word.isBoundBehind && isLetter(text, at)) continue
        longest = word
      }
      branch = branch.next.get(text.charCodeAt(at))
    }
    return longest
  }

  private add(pattern: string, kind: Kind): void {
    const literal = pattern.replace(/^\^|\$$/g, '')
    const [first, second, third = 0] = Array.from({ length: literal.length }, (_, at) =>
      literal.charCodeAt(at),
    )
    if (first === undefined || second === undefined || (third === 0 && first <= lastAscii)) {
      throw new Error(`A word of the vocabulary is too short: ${pattern}`)
    }
    this.beginnings[hashOf(first, second, third)] = 1
    let branch = this.root
    for (let at = 0; at < literal.length; at++) {
      const character = literal.charCodeAt(at)
      const next = branch.next.get(character) ?? { words: [], next: new Map() }
      branch.next.set(character, next)
      branch = next
    }
    const isBoundBefore = pattern.startsWith('^')
    branch.words.push({ literal, kind, isBoundBefore, isBoundBehind: pattern.endsWith('$') })
  }
}

/** A word in a text, from `start` to before `end`. */
export interface Found<Kind> {
  kind: Kind
  start: number
  end: number
}

interface Branch<Kind> {
  /** Those that end here. */
  words: Word<Kind>[]
  next: Map<number, Branch<Kind>>
}

interface Word<Kind> {
  literal: string
  kind: Kind
  isBoundBefore: boolean
  isBoundBehind: boolean
}

const maxHash = 0xffff
/** ASCII words of two letters say too little. */
const lastAscii = 0x7f

function hashOf(first: number, second: number, third: number): number {
  return (first * 7_919 + second * 331 + third * 5) & maxHash
}

function isLetter(text: string, at: number): boolean {
  return /\p{L}/u.test(text.charAt(at))
}

/**
 * Words between commas, possibly by language. `{login|access}{_code|_pin}` stands for every combination, and an
 * underscore for a space at the beginning or the end.
 */
export function words(lists: string | Record<string, string>): string[] {
  const all = typeof lists === 'string' ? lists : Object.values(lists).join(',')
  return all.split(',').flatMap((word) => combinations(word.trim()).map((each) => each.replaceAll('_', ' ')))
}

function combinations(word: string): string[] {
  const [, before = '', choices, behind = ''] = /^([^{]*)\{([^}]*)\}(.*)$/s.exec(word) ?? []
  if (choices === undefined) return [word]
  return choices.split('|').flatMap((choice) => combinations(before + choice.trim() + behind))
}
