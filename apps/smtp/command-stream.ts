import { SMTPStream } from 'smtp-server/lib/smtp-stream.js'
import type { MailData } from './mail-data.js'

const LF = 0x0a
const CR = 0x0d
/** Then others have their turn, and replies leave. */
const MAX_COMMANDS_AT_ONCE = 100
const NOTHING = Buffer.alloc(0)

type Done = (error?: Error | null) => void

/** Large mails that read on in one turn of the event loop, 64 KiB each. */
const MAX_READING_ON = 8
const waiting: Done[] = []

/**
 * Lets the streams of large mails read on a few at a time. Node reads up to 2 MiB from a socket in one turn of the event
 * loop, so a few hundred connections could keep all others waiting for seconds.
 */
function readOnInTurn(done: Done): void {
  waiting.push(done)
  if (waiting.length === 1) setImmediate(readOn)
}

function readOn(): void {
  const reading = waiting.splice(0, MAX_READING_ON)
  // First, since a stream that has buffered more waits again at once, and schedules the turn if nothing else waits.
  if (waiting.length > 0) setImmediate(readOn)
  for (const done of reading) done()
}

export interface IncomingData {
  data: MailData
  /** Told at the mail's end; given what lets the stream read on. */
  onEnd: (readOn: () => void) => void
  /** Told where there is no end to be waited for: nothing is read any more. */
  onEndless: () => void
}

/**
 * Commands one after the other, each once the one before it is answered; a mail's data by MailData instead of
 * through a stream for each mail. What is pipelined behind a mail (RFC 2920) waits until that mail was answered.
 *
 * A command ends in CRLF. One that ends in a bare LF is handed on with it, to be refused (RFC 5321, section 2.3.8);
 * one that has no end when the connection ends is none.
 */
export class CommandStream extends SMTPStream {
  private mail: IncomingData | null = null
  /** The beginning of a line. */
  private begun: Buffer = NOTHING

  /** What comes from now on is the mail. */
  receive(mail: IncomingData): void {
    this.mail = mail
  }

  override _write(chunk: Buffer, _encoding: BufferEncoding | 'buffer', done: Done): void {
    if (this.mail === null) this.readCommands(chunk, done)
    else this.readMail(this.mail, chunk, done)
  }

  override _flushData(): void {
    this.begun = NOTHING
  }

  private readMail({ data, onEnd, onEndless }: IncomingData, chunk: Buffer, done: Done): void {
    const rest = data.write(chunk)
    if (rest !== null) {
      this.mail = null
      onEnd(() => this._write(rest, 'buffer', done))
    } else if (data.isEndless) {
      onEndless()
    } else if (data.isLarge) {
      readOnInTurn(done)
    } else {
      done()
    }
  }

  private readCommands(chunk: Buffer, done: Done): void {
    let from = 0
    let dispatched = 0
    let isDispatching = false
    let isAnswered = false
    const readOn = () => {
      // Many commands are answered at once: a loop, so that the stack does not grow with them.
      isAnswered = true
      if (isDispatching) return
      isDispatching = true
      while (isAnswered) {
        if (this.isClosed) {
          done()
          return
        }
        if (this.mail !== null) {
          this._write(chunk.subarray(from), 'buffer', done)
          return
        }
        const end = chunk.indexOf(LF, from)
        if (end < 0) {
          done(this.keep(chunk.subarray(from)))
          return
        }
        const line = this.lineTo(chunk.subarray(from, end + 1))
        if (line.length > this._maxCommandLength) {
          done(this.tooLong())
          return
        }
        from = end + 1
        if (dispatched === MAX_COMMANDS_AT_ONCE) {
          dispatched = 0
          setImmediate(() => this.oncommand(line, readOn))
          break
        }
        dispatched += 1
        isAnswered = false
        this.oncommand(line, readOn)
      }
      isDispatching = false
    }
    readOn()
  }

  /** A line without its CRLF, or with its bare LF. */
  private lineTo(end: Buffer): Buffer {
    const line = this.begun.length === 0 ? end : Buffer.concat([this.begun, end])
    this.begun = NOTHING
    return line.at(-2) === CR ? line.subarray(0, -2) : line
  }

  /** The error ends the session; what has come already must not run until it has. */
  private tooLong(): Error {
    this.isClosed = true
    return this._commandTooLong()
  }

  /** The error where a line is longer than any may be, whatever comes behind. */
  private keep(more: Buffer): Error | null {
    // A CR at its end may belong to the line's end.
    if (this.begun.length + more.length > this._maxCommandLength + 1) return this.tooLong()
    // A copy, so that a few bytes don't hold on to the chunk that they came in.
    const begun = Buffer.allocUnsafeSlow(this.begun.length + more.length)
    this.begun.copy(begun)
    more.copy(begun, this.begun.length)
    this.begun = begun
    return null
  }
}
