import type { Mailbox } from '../message.js'
import { decodeWords } from './encoded-words.js'
import { endOfComment } from './parameters.js'

/**
 * The first `maxCount` mailboxes of an address header (RFC 5322, section 3.4 and its obsolete forms; RFC 6532),
 * including those in groups. Entries with a name but no address are left out. Accepts names that contain a comma
 * without quotes, missing and stray brackets, and semicolons as separators. Addresses are unchanged: quotes and
 * Punycode are kept. An encoded word is never an address. Takes linear time.
 */
export function readMailboxes(value: string, maxCount: number): Mailbox[] {
  return new AddressReader(value).read(maxCount)
}

interface Token {
  kind: 'word' | 'quoted' | 'comment'
  /** A quoted string includes its quotes and escapes. */
  text: string
  /** Whether it follows the previous token without white space. */
  isAdjacent: boolean
}

/**
 * An encoded word of a name, which may contain characters that otherwise separate mailboxes; or a word up to such a
 * character, of which a domain literal (RFC 5322, section 3.4.1) may contain colons.
 */
const WORD = /=\?[^\s?]{1,100}\?[bq]\?[^\s?]{0,500}\?=|[^](?:(?<=@)\[[\w.:-]{0,80}\]|[^\s,:;<>("])*/iy
const QUOTED = /"(?:[^"\\]|\\[^])*"/y
const UP_TO_UNCLOSED_QUOTE = /^(?:[^"]|"(?:[^"\\]|\\.)*")*/
/** Up to the next bracket that is not in a quoted string. A quote that is never closed ends with the text. */
const IN_ANGLE = /(?:"(?:[^"\\]|\\[^]?)*(?:"|$)|[^"<>])*/y
const BEFORE_SEPARATOR = /^(?:"(?:[^"\\]|\\[^]?)*(?:"|$)|[^",;])*/

class AddressReader {
  private readonly found: Mailbox[] = []
  private at = 0
  private tokens: Token[] = []
  private angle: string | null = null
  /** Text before commas, if it may be the beginning of a name that contains commas. */
  private nameParts: string[] = []
  private isSpaceBefore = true
  /** Whether a quote without its closing quote was found: later quotes are ignored. */
  private hasUnclosedQuote = false

  constructor(private readonly text: string) {}

  read(maxCount: number): Mailbox[] {
    while (this.at < this.text.length && this.found.length < maxCount) this.step(this.text.charAt(this.at))
    this.endEntry(';')
    return this.found.slice(0, maxCount)
  }

  private step(character: string): void {
    if (/\s/.test(character)) {
      this.at++
      this.isSpaceBefore = true
    } else if (character === ',' || character === ';') {
      this.at++
      this.endEntry(character)
    } else if (character === '<') this.readAngle()
    else if (character === '>') this.at++
    else if (character === '(') this.addToken('comment', this.takeComment())
    else if (character === '"') this.readQuoted()
    else if (character === ':' && this.isGroupName()) {
      this.at++
      this.tokens = []
      this.nameParts = []
      this.isSpaceBefore = true
    } else this.addToken('word', this.take(WORD))
  }

  private addToken(kind: Token['kind'], text: string): void {
    this.tokens.push({ kind, text, isAdjacent: !this.isSpaceBefore })
    this.isSpaceBefore = kind === 'comment'
  }

  private isGroupName(): boolean {
    return this.angle === null && !this.tokens.some(({ kind, text }) => kind === 'word' && text.includes('@'))
  }

  /** The text at the position that matches a sticky pattern; the position moves behind it. */
  private take(pattern: RegExp): string {
    pattern.lastIndex = this.at
    const [taken = ''] = pattern.exec(this.text) ?? []
    this.at += taken.length
    return taken
  }

  private readQuoted(): void {
    const quoted = this.hasUnclosedQuote ? '' : this.take(QUOTED)
    if (quoted !== '') {
      this.addToken('quoted', quoted)
      return
    }
    this.hasUnclosedQuote = true
    this.at++
  }

  /** The text of a comment, without its brackets. A comment that is never closed ends with the text. */
  private takeComment(): string {
    const start = this.at + 1
    this.at = endOfComment(this.text, this.at)
    return this.text.slice(start, Math.min(this.at - 1, this.text.length)).replace(/\\(.)/g, '$1')
  }

  /** If the bracket is never closed, the address ends before the next separator. It must contain an at sign. */
  private readAngle(): void {
    this.take(/<+/y)
    const start = this.at
    const content = this.take(IN_ANGLE)
    const isClosed = this.take(/>/y) !== ''
    const [kept] = isClosed ? [content] : (BEFORE_SEPARATOR.exec(content) ?? [''])
    const address = cleanAddress(kept)
    if (isClosed || address.includes('@')) this.angle ??= address
    if (!isClosed) this.at = address.includes('@') ? start + kept.length : start
    this.isSpaceBefore = true
  }

  private endEntry(separator: ',' | ';'): void {
    const { tokens, angle } = this
    this.tokens = []
    this.angle = null
    this.isSpaceBefore = true
    if (angle !== null) {
      const words = tokens.filter(({ kind }) => kind !== 'comment')
      const name = [...this.nameParts, phrase(words.length > 0 ? words : tokens.slice(-1))].filter(
        (part) => part !== '',
      )
      this.nameParts = []
      this.addMailbox(name.join(', '), angle)
    } else if (!this.addBare(tokens) && separator === ',' && isPlainText(tokens)) {
      this.nameParts.push(phrase(tokens))
      return
    }
    this.nameParts = []
  }

  /** Adds a mailbox without brackets for each word with an at sign; false if there is none. */
  private addBare(tokens: Token[]): boolean {
    const words: Token[][] = []
    for (const token of tokens) {
      if (token.kind === 'comment') continue
      const before = words.at(-1)
      const isJoined =
        token.isAdjacent || token.text.startsWith('@') || before?.at(-1)?.text.endsWith('@') === true
      if (before !== undefined && isJoined) before.push(token)
      else words.push([token])
    }
    const isAddress = (word: Token[]) => word.some(({ kind, text }) => kind === 'word' && text.includes('@'))
    const addresses = words.filter(isAddress)
    const rest = words.filter((word) => !isAddress(word)).flat()
    // The older form of a name (RFC 822, appendix A.1.3): `jo@app.example (Jo)`.
    const comments = tokens.filter(({ kind }) => kind === 'comment').slice(-1)
    for (const [index, address] of addresses.entries()) {
      const name = index > 0 ? '' : phrase(rest.length > 0 ? rest : comments)
      this.addMailbox(name, address.map(({ text }) => text).join(''))
    }
    return addresses.length > 0
  }

  private addMailbox(name: string, address: string): void {
    if (address === '') return
    this.found.push({ name: name === '' ? null : name.toWellFormed(), address: address.toWellFormed() })
  }
}

function isPlainText(tokens: Token[]): boolean {
  return tokens.length > 0 && tokens.every(({ kind }) => kind === 'word')
}

function phrase(tokens: Token[]): string {
  let text = ''
  for (const { kind, text: token, isAdjacent } of tokens) {
    if (text !== '' && !isAdjacent) text += ' '
    text += kind === 'quoted' ? token.slice(1, -1).replace(/\\(.)/g, '$1') : token
  }
  return decodeWords(text).replace(/\s+/g, ' ').trim()
}

/** Removes a source route (RFC 5322, section 4.4), and comments and white space outside of quotes. */
function cleanAddress(text: string): string {
  const route = /^\s*@[^:"]*:([^]*)$/.exec(text)
  const address = route?.[1] ?? text
  // A quote that is never closed is an ordinary character. It is looked for once, so that this takes linear time.
  const [closed = ''] = UP_TO_UNCLOSED_QUOTE.exec(address) ?? []
  const tokens = closed.split(/("(?:[^"\\]|\\.)*")/)
  tokens.push((tokens.pop() ?? '') + address.slice(closed.length))
  return tokens.map((token) => (token.startsWith('"') ? token : token.replace(/\([^()]*\)|\s/g, ''))).join('')
}
