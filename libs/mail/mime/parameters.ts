import { decodeText } from './charset.js'
import { decodeWords, unescapeBytes } from './encoded-words.js'

/** A header value with parameters, such as that of Content-Type. */
export interface ParameterValue {
  /** The text before the parameters, in lower case; may be empty. */
  value: string
  /** By name in lower case. If a parameter is repeated, the first one is used. */
  parameters: Map<string, string>
}

/** Senders write these values without quotes even if they contain spaces and brackets. */
const FILE_NAMES = new Set(['filename', 'name'])
const SECTION = /^([^*]+)\*(?:(\d{1,3})(\*)?)?$/
const PERCENT_ESCAPE = /%([0-9a-f]{2})/gi

/**
 * Reads a header value with parameters (RFC 2045, section 5.1), including continued and encoded ones (RFC 2231).
 * Accepts encoded words in values, missing and doubled semicolons, missing quotes, comments, and Windows paths with
 * single backslashes. Never fails. Takes linear time.
 */
export function readParameters(text: string): ParameterValue {
  VALUE.lastIndex = 0
  const [{ length: end } = '', word = ''] = VALUE.exec(text) ?? []
  const isParameter = text[end] === '='
  const plain = new Map<string, string>()
  const sections = new Map<string, Map<number, Section>>()
  for (const next of parametersIn(text, isParameter ? end - word.length : end)) {
    const [, base, number = '0', star] = SECTION.exec(next.name) ?? []
    if (base === undefined) {
      if (!plain.has(next.name)) plain.set(next.name, decodeWords(next.value))
      continue
    }
    const isEncoded = star !== undefined || next.name === `${base}*`
    const known = sections.get(base) ?? new Map<number, Section>()
    if (!known.has(Number(number))) known.set(Number(number), { text: next.value, isEncoded })
    sections.set(base, known)
  }
  for (const [name, parts] of sections) {
    const joined = joinSections(parts)
    // RFC 6266, section 4.3: the extended form takes precedence over the plain one.
    if (joined !== null) plain.set(name, joined)
  }
  return { value: isParameter ? '' : word.replace(/\s+/g, '').toLowerCase(), parameters: plain }
}

interface Section {
  text: string
  isEncoded: boolean
}

/** Joins the sections from 0 up to the first gap (RFC 2231, sections 3 and 4); null if there is no section 0. */
function joinSections(parts: Map<number, Section>): string | null {
  if (!parts.has(0)) return null
  let charset: string | null = null
  const pieces: Buffer[] = []
  let isEncoded = false
  for (let number = 0, part = parts.get(0); part !== undefined; part = parts.get(++number)) {
    let { text } = part
    if (number === 0 && part.isEncoded) {
      const [, declared, rest] = /^([^']*)'[^']*'([^]*)$/.exec(text) ?? []
      if (declared !== undefined && declared !== '') charset = declared
      text = rest ?? text
    }
    isEncoded ||= part.isEncoded
    pieces.push(part.isEncoded ? unescapeBytes(text, PERCENT_ESCAPE) : Buffer.from(text))
  }
  const bytes = Buffer.concat(pieces)
  return isEncoded ? decodeText(bytes, charset).text : decodeWords(bytes.toString())
}

/** The first word, possibly with white space around its slash. */
const VALUE = /[\s"]*([^\s;,=("/]*(?:\s*\/+\s*[^\s;,=("]*)?)/y
/** A backslash escapes only quotes and backslashes, as paths contain it too. */
const QUOTED = /"((?:[^"\\]|\\(?:["\\]|(?!["\\])))*)"/y

/** The parameters of a text from a position on, in order. Words without a value are skipped. */
function* parametersIn(text: string, start: number): Generator<{ name: string; value: string }> {
  let at = start
  /** The text at the position that matches a sticky pattern; the position moves behind it. */
  const take = (pattern: RegExp): string => {
    pattern.lastIndex = at
    const [taken = ''] = pattern.exec(text) ?? []
    at += taken.length
    return taken
  }
  const takeValue = (name: string): string => {
    const quoted = take(QUOTED)
    if (quoted !== '') return quoted.slice(1, -1).replace(/\\(["\\])/g, '$1')
    // A quote that is never closed is ignored.
    const isUnclosed = take(/"/y) !== ''
    if (isUnclosed || FILE_NAMES.has(name.replace(/\*.*$/, ''))) return take(/[^;]*/y).trim()
    return take(name === 'boundary' ? /[^\s;]*/y : /[^\s;(]*/y)
  }
  while (at < text.length) {
    take(/[\s;,]*/y)
    if (text[at] === '(') {
      at = endOfComment(text, at)
      continue
    }
    const name = take(/[^\s;,=]*/y).toLowerCase()
    if (take(/\s*=\s*/y) !== '') yield { name, value: takeValue(name) }
  }
}

/** The position after the comment at `start` (RFC 5322, section 3.2.2); after the text if it is never closed. */
export function endOfComment(text: string, start: number): number {
  let depth = 0
  let at = start
  for (; at < text.length; at++) {
    const character = text[at]
    if (character === '\\') at++
    else if (character === '(') depth++
    else if (character === ')' && --depth === 0) break
  }
  return at + 1
}
