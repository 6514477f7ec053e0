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
  const { error: reason, input: fragment } = error
  const at = unitOf(pattern, reason, fragment ?? '\\')
  return { reason, position: Array.from(pattern.slice(0, at)).length }
}

/** The library names what is wrong, but not where that is. */
function unitOf(pattern: string, reason: string, fragment: string): number {
  if (reason === 'missing closing )') {
    // What is before the first group that is not closed is a whole expression, and nothing longer is.
    let at = pattern.lastIndexOf('(')
    while (at > 0 && syntaxErrorOf(pattern.slice(0, at)) !== null) at = pattern.lastIndexOf('(', at - 1)
    return Math.max(at, 0)
  }
  // The shortest beginning with the same error ends where the error does.
  let end = 1
  while (end < pattern.length) {
    const found = syntaxErrorOf(pattern.slice(0, end))
    if (found?.error === reason && (reason === 'unexpected )' || found.input === fragment)) break
    end += 1
  }
  if (reason === 'unexpected )') return end - 1
  return Math.max(pattern.slice(0, end).lastIndexOf(fragment), 0)
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
