const maskOfBeginnings = 0x3fff

/**
 * Finds the words of several lists in a text in one pass. A look at each character costs the same however many
 * words there are; none can make it go back.
 */
export class Vocabulary<Kind extends string> {
  /** By their first two characters, longest first. */
  private readonly words = new Map<number, Word<Kind>[]>()
  /** Which pairs of characters a word may begin with, by the pair's last bits: most places are passed over by this. */
  private readonly beginnings = new Uint8Array(maskOfBeginnings + 1)

  constructor(lists: Record<Kind, readonly string[]>) {
    for (const kind in lists) for (const word of lists[kind]) this.add(word, kind)
    for (const words of this.words.values()) {
      words.sort((one, other) => other.literal.length - one.literal.length)
    }
  }

  /** In lower-cased text, the longest word at each place, in order of where they start. They may overlap. */
  wordsIn(text: string): Found<Kind>[] {
    const found: Found<Kind>[] = []
    for (let at = this.next(text, 0); at !== -1; at = this.next(text, at + 1)) {
      const word = this.wordAt(text, at)
      if (word !== null) found.push({ kind: word.kind, start: at, end: at + word.literal.length })
    }
    return found
  }

  isIn(text: string): boolean {
    for (let at = this.next(text, 0); at !== -1; at = this.next(text, at + 1)) {
      if (this.wordAt(text, at) !== null) return true
    }
    return false
  }

  /** The next place at which a word may begin; -1 for none. */
  private next(text: string, from: number): number {
    let first = text.charCodeAt(from)
    for (let at = from; at + 1 < text.length; at++) {
      const second = text.charCodeAt(at + 1)
      if (this.beginnings[(first * 64 + second) & maskOfBeginnings] === 1) return at
      first = second
    }
    return -1
  }

  private wordAt(text: string, start: number): Word<Kind> | null {
    const words = this.words.get(keyOf(text, start))
    if (words === undefined) return null
    for (const word of words) {
      if (!text.startsWith(word.literal, start)) continue
      if (word.isBoundBefore && isPartOfWord(text, start - 1)) continue
      if (word.isBoundBehind && isPartOfWord(text, start + word.literal.length)) continue
      return word
    }
    return null
  }

  private add(pattern: string, kind: Kind): void {
    const isBoundBefore = pattern.startsWith('^')
    const isBoundBehind = pattern.endsWith('$')
    const literal = pattern.slice(isBoundBefore ? 1 : 0, isBoundBehind ? -1 : undefined)
    const key = keyOf(literal, 0)
    this.beginnings[(literal.charCodeAt(0) * 64 + literal.charCodeAt(1)) & maskOfBeginnings] = 1
    const words = this.words.get(key)
    const word = { literal, kind, isBoundBefore, isBoundBehind }
    if (words === undefined) this.words.set(key, [word])
    else words.push(word)
  }
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

function keyOf(text: string, at: number): number {
  return text.charCodeAt(at) * 65_536 + text.charCodeAt(at + 1)
}

const letter = /\p{L}/u

function isPartOfWord(text: string, at: number): boolean {
  return at >= 0 && letter.test(text.charAt(at))
}
