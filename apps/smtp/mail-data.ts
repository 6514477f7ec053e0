import type { Inbox } from '#libs/domain/inbox/inbox.js'
import type { Envelope } from '#libs/mail/message.js'
import type { MemoryLimit } from './connection-limits.js'
import type { SenderKey } from './smtp-auth.js'

const CR = 0x0d
const LF = 0x0a
const DOT = 0x2e

const FIRST_BYTES = 8 * 1024
/** At most this much is allocated for a declared size, because the client has not sent the bytes yet. */
const MAX_DECLARED_BYTES = 256 * 1024
/** Buffers of FIRST_BYTES for reuse. Most mails need only one, and allocating it would be half of their garbage. */
const spare: Buffer[] = []
const MAX_SPARE = 256
/** Added to the limit up to which a mail is read, so that small mails are read to their end. */
const MAX_SLACK_BYTES = 1024 * 1024
const LARGE_BYTES = 64 * 1024
const NOTHING = Buffer.alloc(0)

/**
 * The state before the next byte. `dot`: after a dot at the start of a line; `dot-cr`: after such a dot and a CR, so
 * that an LF ends the mail.
 */
type LineState = 'line-start' | 'dot' | 'dot-cr' | 'text' | 'cr'

export interface MailLimits {
  maxBytes: number
  /** SIZE of MAIL FROM (RFC 1870); null if the client sent none. */
  declaredBytes: number | null
}

/** `complete`, or why the mail's bytes were dropped. */
export type MailState = 'complete' | 'too-large' | 'memory-full' | 'bare-line-break'

/**
 * Reads the content after DATA up to its end, which is CRLF.CRLF and nothing else (RFC 5321, section 4.1.1.4). It
 * removes stuffed dots (section 4.5.2) and adds nothing. A CR or LF that is not part of a CRLF (section 2.3.8) does
 * not end the mail, and the mail is refused for it. A mail that is dropped is still read to its end.
 *
 * The limit counts the allocated bytes until `release`.
 */
export class MailData {
  private line: LineState = 'line-start'
  private buffer: Buffer
  private length = 0
  private state: MailState = 'complete'
  private readBytes = 0

  /** Null if no memory is left. */
  static begin(limits: MailLimits, memory: MemoryLimit): MailData | null {
    const declared = Math.min(limits.declaredBytes ?? 0, MAX_DECLARED_BYTES)
    const bytes = Math.min(Math.max(declared, FIRST_BYTES), limits.maxBytes)
    return memory.tryTake(bytes) ? new MailData(limits.maxBytes, bytes, memory) : null
  }

  private constructor(
    private readonly maxBytes: number,
    bytes: number,
    private readonly memory: MemoryLimit,
  ) {
    this.buffer = (bytes === FIRST_BYTES ? spare.pop() : undefined) ?? Buffer.allocUnsafeSlow(bytes)
  }

  /** Returns the bytes after the mail's end, or null if the end has not been read yet. */
  write(chunk: Buffer): Buffer | null {
    this.readBytes += chunk.length
    // The start of the content that is not copied yet.
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
    // A CR after a line's only dot is part of the mail's end; otherwise the mail is refused.
    this.keep(chunk, from, this.line === 'dot-cr' ? chunk.length - 1 : chunk.length)
    return null
  }

  /** Whether the mail is so large that other connections are read in between. */
  get isLarge(): boolean {
    return this.readBytes > LARGE_BYTES
  }

  /** Whether the mail is so far beyond the limit that its end is not awaited. */
  get isTooLong(): boolean {
    return this.readBytes > 2 * this.maxBytes + MAX_SLACK_BYTES
  }

  /** The content, once the end has been read. Valid until `release`. */
  content(): { state: 'complete'; raw: Buffer } | { state: Exclude<MailState, 'complete'> } {
    if (this.state !== 'complete') return { state: this.state }
    return { state: 'complete', raw: this.buffer.subarray(0, this.length) }
  }

  /** Frees the memory. Can be repeated. */
  release(): void {
    this.memory.release(this.buffer.length)
    if (this.buffer.length === FIRST_BYTES && spare.length < MAX_SPARE) spare.push(this.buffer)
    this.buffer = NOTHING
  }

  /** Frees the memory for another mail. The rest is read and discarded. */
  dropForMemory(): void {
    this.drop('memory-full')
  }

  private keep(chunk: Buffer, from: number, to: number): void {
    const bytes = to - from
    if (bytes <= 0 || this.state !== 'complete') return
    if (this.length + bytes > this.maxBytes) {
      this.drop('too-large')
      return
    }
    if (this.length + bytes > this.buffer.length && !this.grow(this.length + bytes)) return
    chunk.copy(this.buffer, this.length, from, to)
    this.length += bytes
  }

  /** At least doubles the buffer, so that a mail in many small chunks is copied a bounded number of times. */
  private grow(minBytes: number): boolean {
    const bytes = Math.min(Math.max(minBytes, this.buffer.length * 2), this.maxBytes)
    if (!this.memory.tryTake(bytes)) {
      this.drop('memory-full')
      return false
    }
    const larger = Buffer.allocUnsafeSlow(bytes)
    this.buffer.copy(larger, 0, 0, this.length)
    this.memory.release(this.buffer.length)
    this.buffer = larger
    return true
  }

  private drop(state: Exclude<MailState, 'complete'>): void {
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
  /** The inbox as it was at RCPT TO. */
  inbox: Inbox
  rcptTo: string
}

export interface IncomingMail {
  raw: Buffer
  trace: Omit<Envelope, 'rcptTo'>
  recipients: readonly Recipient[]
  /** Null if the client did not authenticate with an API key. */
  senderKey: SenderKey | null
  /** The end of retries for missing records, on the clock of `performance.now()`. */
  deadlineMs: number
  /** Aborts when the client has disconnected. */
  disconnected: AbortSignal
}

/** How many bytes are searched for Message-ID, which senders put among the first header fields. */
const HEAD_BYTES = 64 * 1024
/** RFC 5322, section 3.6.4, folded or not (section 2.2.3). */
const MESSAGE_ID = /^message-id:((?:.*)(?:\r?\n[ \t].*)*)/im

/** The Message-ID of a mail; null if it has none. */
export function identityOf(raw: Buffer): string | null {
  const start = raw.subarray(0, HEAD_BYTES)
  const end = start.indexOf('\r\n\r\n')
  // A header may also end with an empty line without CR.
  const [header = ''] = start.toString('latin1', 0, end === -1 ? HEAD_BYTES : end).split(/\r?\n\r?\n/, 1)
  const [, value = ''] = MESSAGE_ID.exec(header) ?? []
  const identity = value.replaceAll(/\r?\n/g, '').trim()
  return identity === '' ? null : identity
}
