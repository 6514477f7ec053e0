import { decodeText } from './charset.js'
import { decodeWords } from './encoded-words.js'

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
const PERCENT_ESCAPE = /^%[0-9a-f]{2}/i

/**
 * Reads a header value with parameters (RFC 2045, section 5.1), including continued and encoded ones (RFC 2231).
 * Accepts encoded words in values, missing and doubled semicolons, missing quotes, comments, and Windows paths with
 * single backslashes. Never fails. Takes linear time.
 */
export function readParameters(text: string): ParameterValue {
  const reader = new ParameterReader(text)
  const value = reader.readValue()
  const plain = new Map<string, string>()
  const sections = new Map<string, Map<number, Section>>()
  for (let next = reader.next(); next !== null; next = reader.next()) {
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
  return { value, parameters: plain }
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
    pieces.push(part.isEncoded ? percentDecode(text) : Buffer.from(text))
  }
  const bytes = Buffer.concat(pieces)
  return isEncoded ? decodeText(bytes, charset).text : decodeWords(bytes.toString())
}

/** A percent sign that does not begin an escape is kept. */
function percentDecode(text: string): Buffer {
  const pieces = text.split(/(?=%)/).map((piece) => {
    if (!PERCENT_ESCAPE.test(piece)) return Buffer.from(piece)
    return Buffer.concat([Buffer.from(piece.slice(1, 3), 'hex'), Buffer.from(piece.slice(3))])
  })
  return Buffer.concat(pieces)
}

class ParameterReader {
  private at = 0

  constructor(private readonly text: string) {}

  /** Reads the first word. White space around its slash is removed. */
  readValue(): string {
    this.skip(/[\s"]/)
    const start = this.at
    let value = this.take(/[^\s;,=("]/)
    if (this.text[this.at] === '=') {
      this.at = start
      return ''
    }
    this.skip(/\s/)
    if (value.endsWith('/') || this.text[this.at] === '/') {
      value += this.take(/\//)
      this.skip(/\s/)
      value += this.take(/[^\s;,=("]/)
    }
    return value.toLowerCase()
  }

  next(): { name: string; value: string } | null {
    while (this.at < this.text.length) {
      this.skip(/[\s;,]/)
      if (this.text[this.at] === '(') {
        this.at = endOfComment(this.text, this.at)
        continue
      }
      const name = this.take(/[^\s;,=]/).toLowerCase()
      this.skip(/\s/)
      // A word without a value, or the end of the text.
      if (this.text[this.at] !== '=') continue
      this.at++
      this.skip(/\s/)
      return { name, value: this.readParameter(name) }
    }
    return null
  }

  private readParameter(name: string): string {
    if (this.text[this.at] === '"') {
      const quoted = this.readQuoted()
      if (quoted !== null) return quoted
      this.at++
      return this.take(/[^;]/).trim()
    }
    if (FILE_NAMES.has(name.replace(/\*.*$/, ''))) return this.take(/[^;]/).trim()
    return this.take(name === 'boundary' ? /[^\s;]/ : /[^\s;(]/)
  }

  /** Null if the quote is never closed. A backslash escapes only quotes and backslashes, as paths contain it too. */
  private readQuoted(): string | null {
    let value = ''
    let start = this.at + 1
    for (let at = start; at < this.text.length; at++) {
      const character = this.text[at]
      if (character === '"') {
        this.at = at + 1
        return value + this.text.slice(start, at)
      }
      const next = this.text[at + 1]
      if (character === '\\' && (next === '"' || next === '\\')) {
        value += this.text.slice(start, at)
        start = at + 1
        at++
      }
    }
    return null
  }

  private skip(set: RegExp): void {
    while (this.at < this.text.length && set.test(this.text.charAt(this.at))) this.at++
  }

  private take(set: RegExp): string {
    const start = this.at
    this.skip(set)
    return this.text.slice(start, this.at)
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
