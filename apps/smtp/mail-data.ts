import type { Inbox } from '#libs/domain/inbox/inbox.js'
import type { Envelope } from '#libs/mail/message.js'
import type { Budget } from './connection-limits.js'
import type { SenderKey } from './smtp-auth.js'

const CR = 0x0d
const LF = 0x0a
const DOT = 0x2e

const FIRST_BYTES = 8 * 1024
/** What a client declares it has not sent yet: the rest is taken as it comes. */
const MAX_DECLARED_BYTES = 256 * 1024
/** Buffers of FIRST_BYTES to be used again: most mails need no other, and making them is half their garbage. */
const spare: Buffer[] = []
const MAX_SPARE = 256
/** Small mails are read to their end, however small the limit. */
const MAX_SLACK_BYTES = 1024 * 1024
const LARGE_BYTES = 64 * 1024
const NOTHING = Buffer.alloc(0)

/**
 * What comes before the next byte in its line. `dot`: a dot that begins the line; `dot-cr`: such a dot and a CR, so that
 * an LF ends the mail.
 */
type LineState = 'line-start' | 'dot' | 'dot-cr' | 'text' | 'cr'

export interface MailLimits {
  maxBytes: number
  /** SIZE of MAIL FROM (RFC 1870); null if the client gave none. */
  declaredBytes: number | null
}

/** What became of a mail's bytes: whole, or why they were dropped on the way. */
export type MailState = 'whole' | 'too-large' | 'memory-full' | 'bare-line-break'

/**
 * Takes what follows DATA up to its end, CRLF.CRLF and nothing else (RFC 5321, section 4.1.1.4), and keeps the
 * content: dots that were stuffed are taken out (section 4.5.2), nothing is added. A CR or LF that is not part
 * of a CRLF (section 2.3.8) neither ends the mail nor passes. Whatever is dropped is still read to the end.
 *
 * The budget counts what is allocated, from the beginning until `release`.
 */
export class MailData {
  private line: LineState = 'line-start'
  private buffer: Buffer
  private length = 0
  private state: MailState = 'whole'
  private readBytes = 0

  /** Null if the budget is used up. */
  static begin(limits: MailLimits, budget: Budget): MailData | null {
    const declared = Math.min(limits.declaredBytes ?? 0, MAX_DECLARED_BYTES)
    const bytes = Math.min(Math.max(declared, FIRST_BYTES), limits.maxBytes)
    return budget.tryTake(bytes) ? new MailData(limits.maxBytes, bytes, budget) : null
  }

  private constructor(
    private readonly maxBytes: number,
    bytes: number,
    private readonly budget: Budget,
  ) {
    this.buffer = (bytes === FIRST_BYTES ? spare.pop() : undefined) ?? Buffer.allocUnsafeSlow(bytes)
  }

  /** What came behind the mail's end, or null while it goes on. */
  write(chunk: Buffer): Buffer | null {
    this.readBytes += chunk.length
    // Content that is not kept yet begins here.
    let from = 0
    for (let at = 0; at < chunk.length; at += 1) {
      if (this.line === 'text') at = lineBreakFrom(chunk, at)
      const byte = chunk[at]
      if (byte === undefined) break
      if (this.line === 'line-start' && byte === DOT) {
        this.keep(chunk, from, at)
        from = at + 1
        this.line = 'dot'
      } else if (this.line === 'dot' && byte === CR) {
        this.line = 'dot-cr'
      } else if (this.line === 'dot-cr' && byte === LF) {
        return chunk.subarray(at + 1)
      } else if (this.line === 'cr' && byte === LF) {
        this.line = 'line-start'
      } else {
        if (byte === LF || this.line === 'cr' || this.line === 'dot-cr') this.drop('bare-line-break')
        this.line = byte === CR ? 'cr' : 'text'
      }
    }
    // A CR behind a line's only dot belongs to the mail's end, or the mail is refused for it.
    this.keep(chunk, from, this.line === 'dot-cr' ? chunk.length - 1 : chunk.length)
    return null
  }

  /** Whether more has come than others should wait for. */
  get isLarge(): boolean {
    return this.readBytes > LARGE_BYTES
  }

  /** Whether so much has come, twice the limit, that its end is not awaited. */
  get isEndless(): boolean {
    return this.readBytes > 2 * this.maxBytes + MAX_SLACK_BYTES
  }

  /** The content once the end has come. It is valid until `release`. */
  content(): { state: 'whole'; raw: Buffer } | { state: Exclude<MailState, 'whole'> } {
    if (this.state !== 'whole') return { state: this.state }
    return { state: 'whole', raw: this.buffer.subarray(0, this.length) }
  }

  /** Gives the memory back. Harmless to repeat. */
  release(): void {
    this.budget.giveBack(this.buffer.length)
    if (this.buffer.length === FIRST_BYTES && spare.length < MAX_SPARE) spare.push(this.buffer)
    this.buffer = NOTHING
  }

  /** Gives the memory back for another mail; the rest is read, and dropped. */
  dropForMemory(): void {
    this.drop('memory-full')
  }

  private keep(chunk: Buffer, from: number, to: number): void {
    const bytes = to - from
    if (bytes <= 0 || this.state !== 'whole') return
    if (this.length + bytes > this.maxBytes) {
      this.drop('too-large')
      return
    }
    if (this.length + bytes > this.buffer.length && !this.grow(this.length + bytes)) return
    chunk.copy(this.buffer, this.length, from, to)
    this.length += bytes
  }

  /** Doubles, so that a mail of many small pieces is copied a bounded number of times. */
  private grow(least: number): boolean {
    const bytes = Math.min(Math.max(least, this.buffer.length * 2), this.maxBytes)
    if (!this.budget.tryTake(bytes)) {
      this.drop('memory-full')
      return false
    }
    const larger = Buffer.allocUnsafeSlow(bytes)
    this.buffer.copy(larger, 0, 0, this.length)
    this.budget.giveBack(this.buffer.length)
    this.buffer = larger
    return true
  }

  private drop(state: Exclude<MailState, 'whole'>): void {
    if (this.state === 'bare-line-break') return
    this.state = state
    this.release()
  }
}

function lineBreakFrom(chunk: Buffer, from: number): number {
  let at = from
  while (at < chunk.length && chunk[at] !== CR && chunk[at] !== LF) at += 1
  return at
}

export interface Recipient {
  /** As it was at RCPT TO. */
  inbox: Inbox
  rcptTo: string
}

export interface IncomingMail {
  raw: Buffer
  trace: Omit<Envelope, 'rcptTo'>
  recipients: readonly Recipient[]
  /** Null if the client did not authenticate with an API key. */
  senderKey: SenderKey | null
  /** On the clock of `performance.now()`: until then missing records are tried again. */
  deadlineMs: number
  /** Aborts when the client has left. */
  departure: AbortSignal
}
