import { endOfComment } from './parameters.js'
import { decodeWords } from './encoded-words.js'
import type { Mailbox } from '../message.js'

interface Piece {
  kind: 'word' | 'quoted' | 'comment'
  /** A quoted string with its quotes and escapes. */
  text: string
  /** Whether nothing stood between it and the piece before. */
  isGlued: boolean
}

/** A domain literal (RFC 5322, section 3.4.1), which has colons of its own but hides nothing else. */
const domainLiteral = /\[[\w.:-]{0,80}\]/y

/** An encoded word of a name may hold what else separates mailboxes. */
const encodedWord = /=\?[^\s?]{1,100}\?[bq]\?[^\s?]{0,500}\?=/iy

/**
 * The mailboxes of an address header's value (RFC 5322, section 3.4 and its obsolete forms; RFC 6532), those
 * of groups among them; what has a name but no address is left out. Forgives what senders do: names with a
 * comma and no quotes, missing and stray brackets, semicolons as separators. Addresses are given as they stand,
 * quotes and Punycode kept; an address is never made out of an encoded name. Linear. At most `maxCount`, the first ones.
 */
export function readMailboxes(value: string, maxCount: number): Mailbox[] {
  return new AddressReader(value).read(maxCount)
}

class AddressReader {
  private readonly found: Mailbox[] = []
  private at = 0
  private pieces: Piece[] = []
  private angle: string | null = null
  /** Words before a comma that may turn out to be the beginning of a name. */
  private pending: string[] = []
  private isSpaceBefore = true
  private areQuotesOver = false

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
    else if (character === '(') this.add('comment', this.takeComment())
    else if (character === '"') this.readQuoted()
    else if (character === ':' && this.isGroupName()) {
      this.at++
      this.pieces = []
      this.pending = []
      this.isSpaceBefore = true
    } else this.add('word', this.takeWord())
  }

  private add(kind: Piece['kind'], text: string): void {
    this.pieces.push({ kind, text, isGlued: !this.isSpaceBefore })
    this.isSpaceBefore = kind === 'comment'
  }

  private isGroupName(): boolean {
    return this.angle === null && !this.pieces.some(({ kind, text }) => kind === 'word' && text.includes('@'))
  }

  private takeWord(): string {
    encodedWord.lastIndex = this.at
    const encoded = encodedWord.exec(this.text)
    if (encoded !== null) {
      this.at += encoded[0].length
      return encoded[0]
    }
    const start = this.at
    do {
      domainLiteral.lastIndex = this.at
      const literal = this.text[this.at - 1] === '@' ? domainLiteral.exec(this.text) : null
      this.at += literal === null ? 1 : literal[0].length
    } while (this.at < this.text.length && !/[\s,:;<>("]/.test(this.text.charAt(this.at)))
    return this.text.slice(start, this.at)
  }

  private readQuoted(): void {
    const start = this.at
    if (!this.areQuotesOver) {
      for (let at = start + 1; at < this.text.length; at++) {
        const character = this.text[at]
        if (character === '\\') at++
        else if (character === '"') {
          this.at = at + 1
          this.add('quoted', this.text.slice(start, this.at))
          return
        }
      }
      this.areQuotesOver = true
    }
    this.at++
  }

  /** Without its brackets; one that is never closed ends with the text. */
  private takeComment(): string {
    const start = this.at + 1
    this.at = endOfComment(this.text, this.at)
    return this.text.slice(start, Math.min(this.at - 1, this.text.length)).replace(/\\(.)/g, '$1')
  }

  private readAngle(): void {
    while (this.text[this.at] === '<') this.at++
    const start = this.at
    let separator = -1
    let end = start
    let isQuoted = false
    for (; end < this.text.length; end++) {
      const character = this.text[end]
      if (character === '\\' && isQuoted) end++
      else if (character === '"') isQuoted = !isQuoted
      else if (isQuoted) continue
      else if (character === '>' || character === '<') break
      else if ((character === ',' || character === ';') && separator === -1) separator = end
    }
    const isClosed = this.text[end] === '>'
    // Never closed: the address ends where the next mailbox begins, if it is one at all.
    if (!isClosed && separator !== -1) end = separator
    const address = cleanAddress(this.text.slice(start, end))
    if (isClosed || address.includes('@')) {
      this.angle ??= address
      this.at = isClosed ? end + 1 : end
    } else this.at = start
    this.isSpaceBefore = true
  }

  private endEntry(separator: ',' | ';'): void {
    const { pieces, angle } = this
    this.pieces = []
    this.angle = null
    this.isSpaceBefore = true
    if (angle !== null) {
      const words = pieces.filter(({ kind }) => kind !== 'comment')
      const name = [...this.pending, phrase(words.length > 0 ? words : pieces.slice(-1))].filter(
        (part) => part !== '',
      )
      this.pending = []
      this.keep(name.join(', '), angle)
    } else if (!this.keepBare(pieces) && separator === ',' && isUnquoted(pieces)) {
      this.pending.push(phrase(pieces))
      return
    }
    this.pending = []
  }

  /** Mailboxes without brackets, as many as there are words with an at sign; false without any. */
  private keepBare(pieces: Piece[]): boolean {
    const words: Piece[][] = []
    for (const piece of pieces) {
      if (piece.kind === 'comment') continue
      const before = words.at(-1)
      const isJoined =
        piece.isGlued || piece.text.startsWith('@') || before?.at(-1)?.text.endsWith('@') === true
      if (before !== undefined && isJoined) before.push(piece)
      else words.push([piece])
    }
    const isAddress = (word: Piece[]) => word.some(({ kind, text }) => kind === 'word' && text.includes('@'))
    const addresses = words.filter(isAddress)
    const rest = words.filter((word) => !isAddress(word)).flat()
    // The older way to name somebody (RFC 822, appendix A.1.3): `jo@app.example (Jo)`.
    const comments = pieces.filter(({ kind }) => kind === 'comment').slice(-1)
    for (const [index, address] of addresses.entries()) {
      const name = index > 0 ? '' : phrase(rest.length > 0 ? rest : comments)
      this.keep(name, address.map(({ text }) => text).join(''))
    }
    return addresses.length > 0
  }

  private keep(name: string, address: string): void {
    if (address === '') return
    this.found.push({ name: name === '' ? null : name.toWellFormed(), address: address.toWellFormed() })
  }
}

function isUnquoted(pieces: Piece[]): boolean {
  return pieces.length > 0 && pieces.every(({ kind }) => kind === 'word')
}

function phrase(pieces: Piece[]): string {
  let text = ''
  for (const { kind, text: piece, isGlued } of pieces) {
    if (text !== '' && !isGlued) text += ' '
    text += kind === 'quoted' ? piece.slice(1, -1).replace(/\\(.)/g, '$1') : piece
  }
  return decodeWords(text).replace(/\s+/g, ' ').trim()
}

/** Without a source route (RFC 5322, section 4.4) and without comments and white space outside of quotes. */
function cleanAddress(text: string): string {
  const route = /^\s*@[^:"]*:([^]*)$/.exec(text)
  return (route?.[1] ?? text)
    .split(/("(?:[^"\\]|\\.)*")/)
    .map((piece) => (piece.startsWith('"') ? piece : piece.replace(/\([^()]*\)|\s/g, '')))
    .join('')
}
