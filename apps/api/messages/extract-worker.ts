import { LRUCache } from 'lru-cache'
import { RE2JS, RE2JSException, RE2JSSyntaxException } from 're2js'

/*
 * The job of a thread that finds what an expression matches. In a thread, since linear time may still be long.
 */

export interface ExtractTask {
  /** In the syntax of RE2. */
  pattern: string
  texts: readonly (string | null)[]
}

/** A match: its text, and that of each group; null for a group that did not take part. */
export interface Extracted {
  text: string
  groups: (string | null)[]
}

export type ExtractResult =
  { state: 'found'; extracted: Extracted[] } | { state: 'invalid'; reason: string; position: number }

/** Different matches of a message, and the UTF-16 code units of all their texts and groups. */
const MAX_MATCHES = 100
const MAX_LENGTH = 65_536
/** Matches of one text that are examined. */
const MAX_EXAMINED = 1_000

/** Each may need 8 MiB. */
const compiled = new LRUCache<string, RE2JS>({ max: 8 })

/** The different matches in all texts, in their order. */
export function extract({ pattern, texts }: ExtractTask): ExtractResult {
  let expression: RE2JS
  try {
    expression = compiled.get(pattern) ?? RE2JS.compile(pattern)
  } catch (error) {
    if (!(error instanceof RE2JSException)) throw error
    return { state: 'invalid', ...faultOf(pattern, error) }
  }
  compiled.set(pattern, expression)

  const found = new Map<string, Extracted>()
  let lengthLeft = MAX_LENGTH
  for (const text of texts) {
    if (text === null) continue
    const matcher = expression.matcher(text)
    for (let examined = 0; examined < MAX_EXAMINED && matcher.find(); examined += 1) {
      const indexes = Array.from({ length: matcher.groupCount() + 1 }, (_, index) => index)
      const length = indexes.reduce((sum, index) => sum + matcher.end(index) - matcher.start(index), 0)
      if (length > lengthLeft) continue
      const [match, ...groups] = indexes.map((index) => matcher.group(index))
      const each = { text: match ?? '', groups }
      const name = JSON.stringify(each)
      if (found.has(name)) continue
      if (found.size === MAX_MATCHES) break
      lengthLeft -= length
      found.set(name, each)
    }
  }
  return { state: 'found', extracted: [...found.values()] }
}

/** What is wrong in a pattern, and the index of the character where it begins. */
function faultOf(pattern: string, error: RE2JSException): { reason: string; position: number } {
  if (!(error instanceof RE2JSSyntaxException)) return { reason: error.message, position: 0 }
  return { reason: error.error, position: Array.from(pattern.slice(0, unitOf(pattern, error))).length }
}

/** The library names what is wrong, but not where that is. */
function unitOf(pattern: string, { error: reason, input: fragment }: RE2JSSyntaxException): number {
  if (reason.endsWith(' )')) return unpairedOf(pattern)
  if (fragment === null) return reason.startsWith('trailing backslash') ? pattern.length - 1 : 0
  const found: number[] = []
  for (let at = pattern.indexOf(fragment); at >= 0; at = pattern.indexOf(fragment, at + 1)) found.push(at)
  // A beginning has the same error if it contains it, with the character after it. Compiling one may take 100 ms.
  let [first, last] = [0, found.length - 1]
  while (first < last) {
    const middle = Math.floor((first + last) / 2)
    const other = syntaxErrorOf(pattern.slice(0, (found[middle] ?? 0) + fragment.length + 1))
    if (other?.error === reason && other.input === fragment) last = middle
    else first = middle + 1
  }
  return found[last] ?? 0
}

/** Parentheses, and what may contain some that are not special: quoted texts, escapes and classes. */
const TOKEN = /\\Q[^]*?(?:\\E|$)|\\[^]|\[\^?\]?(?:\[:\^?\w+:\]|\\[^]|[^\]\\])*\]|[()]/g

/** The first parenthesis without its counterpart. */
function unpairedOf(pattern: string): number {
  const open: number[] = []
  for (const { 0: token, index } of pattern.matchAll(TOKEN)) {
    if (token === '(') open.push(index)
    if (token === ')' && open.pop() === undefined) return index
  }
  return open[0] ?? 0
}

function syntaxErrorOf(pattern: string): RE2JSSyntaxException | null {
  try {
    RE2JS.compile(pattern)
    return null
  } catch (error) {
    if (error instanceof RE2JSSyntaxException) return error
    throw error
  }
}
