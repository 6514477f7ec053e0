import { signInWords } from './code-words.js'
import {
  enteringBehindWords,
  enteringWords,
  forbiddingWords,
  handingBehindWords,
  handingWords,
  handoverWords,
  purposeWords,
} from './entering-words.js'
import { Vocabulary, type Found } from './vocabulary.js'

const deedsBefore = new Vocabulary({
  entering: enteringWords,
  handing: handingWords,
  forbidding: forbiddingWords,
})
const deedsBehind = new Vocabulary({
  entering: enteringBehindWords,
  handing: handingBehindWords,
  forbidding: forbiddingWords,
})
const purposes = new Vocabulary({ purpose: [...signInWords, ...purposeWords, ...handoverWords] })

/** What a sentence tells its reader to do with a number in it. */
export interface Instruction {
  /** To type it, or to use it or hand it to somebody. */
  kind: 'entering' | 'handing'
  /** Whether its sentence says what for, and that is what codes are for. */
  isForPurpose: boolean
}

const farthestBefore = 40
const farthestBehind = 24
const stops = /[.!?;。！？；\n]/

/**
 * The instruction around a number: `before` is its sentence up to it, `behind` what follows, both lower-cased. In
 * many languages the verb stands behind ("604418 を入力", "604418 kodunu girin"). Where something names another number
 * up to `after`, only a verb between counts.
 */
export function instructionAround(before: string, behind: string, after = 0): Instruction | null {
  const end = behind.search(stops)
  const rest = end === -1 ? behind : behind.slice(0, end)
  const ahead = before.slice(-120)
  const told = deedBefore(ahead, after - (before.length - ahead.length))
  const deed = told ?? (after === 0 ? deedBehind(rest) : null)
  if (deed === null) return null
  // "To open 120433 accounts": a deed is not its own purpose.
  const preamble = told === null ? ahead : ahead.slice(0, told.start)
  return { kind: deed.kind, isForPurpose: purposes.isIn(rest) || purposes.isIn(preamble) }
}

/** Whether a stretch of lower-cased text tells its reader to type something. */
export function tellsToEnter(text: string): boolean {
  const kinds = deedsBefore.kindsIn(text)
  if (kinds.has('forbidding')) return false
  return kinds.has('entering') || deedsBehind.kindsIn(text).has('entering')
}

interface Deed {
  kind: Instruction['kind']
  start: number
}

type Word = Found<Instruction['kind'] | 'forbidding'>

function deedBefore(ahead: string, after: number): Deed | null {
  return deedAmong(
    deedsBefore.wordsIn(ahead),
    ({ start, end }) => start >= after && isShortGap(ahead.slice(end), farthestBefore),
  )
}

function deedBehind(rest: string): Deed | null {
  const text = rest.slice(0, 60)
  return deedAmong(deedsBehind.wordsIn(text), ({ start }) => isShortGap(text.slice(0, start), farthestBehind))
}

function deedAmong(words: readonly Word[], isNear: (word: Word) => boolean): Deed | null {
  if (words.some(({ kind }) => kind === 'forbidding')) return null
  let best: Deed | null = null
  for (const word of words) {
    const { kind, start } = word
    if (kind === 'forbidding' || !isNear(word)) continue
    if (best === null || kind === 'entering') best = { kind, start }
  }
  return best
}

function isShortGap(gap: string, longest: number): boolean {
  return gap.length <= longest && !/[\d,;!?，；]/.test(gap)
}
