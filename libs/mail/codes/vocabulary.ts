/**
 * Finds the words of several lists in a text in one pass. A look at each character costs the same however many
 * words there are; none can make it go back.
 */
export class Vocabulary<Kind extends string> {
  private readonly root = new Branch<Kind>()
  /** Hashes of what words begin with, three characters or two: most places are passed over by this. */
  private readonly beginnings = new Uint8Array(maxHash + 1)

  constructor(lists: Record<Kind, readonly string[]>) {
    for (const kind in lists) for (const word of lists[kind]) this.add(word, kind)
  }

  /** In lower-cased text, the longest word at each place, in order of where they start. They may overlap. */
  wordsIn(text: string): Found<Kind>[] {
    const found: Found<Kind>[] = []
    this.visit(text, ({ kind, literal }, start) => {
      found.push({ kind, start, end: start + literal.length })
      return true
    })
    return found
  }

  /** Which lists have a word in the text. */
  kindsIn(text: string): Set<Kind> {
    const kinds = new Set<Kind>()
    this.visit(text, ({ kind }) => {
      kinds.add(kind)
      return true
    })
    return kinds
  }

  isIn(text: string): boolean {
    let isFound = false
    this.visit(text, () => {
      isFound = true
      return false
    })
    return isFound
  }

  /** Goes on for as long as it is told to. */
  private visit(text: string, see: (word: Word<Kind>, start: number) => boolean): void {
    const { beginnings } = this
    const last = text.length - 2
    if (last < 0) return
    let first = text.charCodeAt(0)
    let second = text.charCodeAt(1)
    for (let at = 0; at <= last; at++) {
      const third = at < last ? text.charCodeAt(at + 2) : 0
      const mayBegin =
        beginnings[hashOf(first, second, third)] === 1 ||
        (first > lastAscii && beginnings[hashOf(first, second, 0)] === 1)
      if (mayBegin) {
        const word = this.wordAt(text, at)
        if (word !== null && !see(word, at)) return
      }
      first = second
      second = third
    }
  }

  private wordAt(text: string, start: number): Word<Kind> | null {
    let longest: Word<Kind> | null = null
    let branch: Branch<Kind> | undefined = this.root
    for (let at = start; branch !== undefined; at++) {
      for (const word of branch.words) {
        if (word.isBoundBefore && isPartOfWord(text, start - 1)) continue
        if (word.isBoundBehind && isPartOfWord(text, at)) continue
        longest = word
      }
      branch = branch.branches.get(text.charCodeAt(at))
    }
    return longest
  }

  private add(pattern: string, kind: Kind): void {
    const isBoundBefore = pattern.startsWith('^')
    const isBoundBehind = pattern.endsWith('$')
    const literal = pattern.slice(isBoundBefore ? 1 : 0, isBoundBehind ? -1 : undefined)
    const first = literal.charCodeAt(0)
    const least = first > lastAscii ? 2 : 3
    if (literal.length < least) throw new Error(`A word of the vocabulary is too short: ${pattern}`)
    const third = literal.length > 2 ? literal.charCodeAt(2) : 0
    this.beginnings[hashOf(first, literal.charCodeAt(1), third)] = 1
    let branch = this.root
    for (let at = 0; at < literal.length; at++) branch = branch.grow(literal.charCodeAt(at))
    branch.words.push({ literal, kind, isBoundBefore, isBoundBehind })
  }
}

/** Of a tree of words, by their characters. */
class Branch<Kind> {
  readonly branches = new Map<number, Branch<Kind>>()
  /** Those that end here. */
  readonly words: Word<Kind>[] = []

  grow(character: number): Branch<Kind> {
    const known = this.branches.get(character)
    if (known !== undefined) return known
    const grown = new Branch<Kind>()
    this.branches.set(character, grown)
    return grown
  }
}

const maxHash = 0xffff
/** In ASCII words of two letters say too little. */
const lastAscii = 0x7f

function hashOf(first: number, second: number, third: number): number {
  return (first * 7_919 + second * 331 + third * 5) & maxHash
}

/** A word as it stands in a text, from `start` to before `end`. */
export interface Found<Kind> {
  kind: Kind
  start: number
  end: number
}

interface Word<Kind> {
  literal: string
  kind: Kind
  isBoundBefore: boolean
  isBoundBehind: boolean
}

/** Words between commas. An underscore stands for a space at the beginning or the end of one. */
export function listed(words: string): string[] {
  return words
    .split(',')
    .map((word) => word.trim().replaceAll('_', ' '))
    .filter((word) => word !== '')
}

/** Every beginning with every ending. */
export function together(beginnings: readonly string[], endings: readonly string[]): string[] {
  return beginnings.flatMap((beginning) => endings.map((ending) => beginning + ending))
}

const letter = /\p{L}/u

function isPartOfWord(text: string, at: number): boolean {
  return at >= 0 && letter.test(text.charAt(at))
}
