import type { Socket } from 'node:net'
import { type SecureContext, TLSSocket } from 'node:tls'
import type { Envelope } from '#libs/mail/message.js'
import type { MailData } from './mail-data.js'
import { type Refusal, REFUSALS } from './replies.js'

const LF = 0x0a
/** RFC 5321, section 4.5.3.1.4: 512 octets, and more for the parameters of extensions. */
const MAX_LINE_BYTES = 2_048
/** After that many, other sessions have their turn, and replies are sent. */
const MAX_LINES_AT_ONCE = 100
/** Large mails that are read on in one turn of the event loop, 64 KiB each. */
const MAX_READING_ON = 8

const turns: (() => void)[] = []

/**
 * Reads on large mails a few at a time. Node reads up to 2 MiB from a socket in one turn of the event loop, so a few
 * hundred connections could keep all others waiting for seconds.
 */
function inTurn(readOn: () => void): void {
  turns.push(readOn)
  if (turns.length === 1) setImmediate(takeTurns)
}

function takeTurns(): void {
  const reading = turns.splice(0, MAX_READING_ON)
  // First, since a mail that has more waits again at once, and schedules the turn if nothing else waits.
  if (turns.length > 0) setImmediate(takeTurns)
  for (const readOn of reading) readOn()
}

export interface StreamEvents {
  /**
   * Called with a line in latin1, without its CRLF or with its bare LF. What follows is read once the promise has
   * resolved, or at once if there is none. The promise never rejects.
   */
  onLine: (line: string) => Promise<void> | null
  /** The mail is complete. What follows is read once the promise has resolved. It never rejects. */
  onMail: () => Promise<void>
  /** A line or a mail is longer than any may be, so its end is not awaited. */
  onEndless: (refusal: Refusal) => void
  /** The session goes on over TLS. */
  onSecure: () => void
  onHandshakeFailed: () => void
  onError: (error: Error) => void
  /** The connection is gone. Called once. */
  onClose: () => void
}

/**
 * The socket of a session: lines and the data of mails come in, replies go out.
 *
 * A line is passed on once the one before it is answered, so pipelined commands (RFC 2920) wait. While they wait, and while
 * the client does not read its replies, nothing more is read. Replies of one turn of the event loop are sent together. A
 * line without an end when the connection ends is ignored.
 */
export class SessionStream {
  /** When bytes last came, on the clock of `performance.now()`. */
  receivedAtMs = performance.now()
  /** When the last reply was given, or the session began or went on over TLS. */
  repliedAtMs = performance.now()
  /** Since when a TLS handshake is under way; null if none is. */
  handshakeSinceMs: number | null = null
  /** Null for a connection in the clear. */
  tls: Envelope['tls'] = null
  isClosed = false
  /** When a socket that was closed is to be destroyed. */
  destroyAtMs = Infinity
  /** Chunks that have come and are not read yet, the first one from `at`. */
  private readonly waiting: Buffer[] = []
  private at = 0
  private begunLine = ''
  private mail: MailData | null = null
  private lines = 0
  /** How many reasons there are to read nothing at the moment. */
  private holds = 0
  private replies = ''
  private readonly release = () => {
    this.holds -= 1
    this.read()
  }
  private readonly flush = () => this.writeReplies()

  constructor(
    private socket: Socket,
    private readonly events: StreamEvents,
  ) {
    this.attach()
  }

  /** Takes what comes from now on for a mail, up to its end. */
  receive(mail: MailData): void {
    this.mail = mail
  }

  reply(text: string): void {
    if (this.isClosed) return
    this.repliedAtMs = performance.now()
    if (this.replies === '') setImmediate(this.flush)
    this.replies += text
  }

  /**
   * Ends the connection after the last reply; in a TLS handshake, at once. What the client still sends is read and
   * discarded, so that it does not reset the connection before the client has read that reply. `destroyAtMs` is when to
   * destroy a connection whose client does not close its side.
   */
  close(lingerMs: number): void {
    this.destroyAtMs = Math.min(this.destroyAtMs, performance.now() + lingerMs)
    if (this.isClosed) return
    this.stopReading()
    if (this.handshakeSinceMs === null) {
      this.writeReplies()
      this.socket.end().resume()
    } else {
      this.socket.destroy()
    }
  }

  destroy(): void {
    this.socket.destroy()
  }

  /**
   * Upgrades to TLS. What came in the clear is discarded (RFC 3207, section 4.2). A handshake that fails ends this
   * connection only.
   */
  startTls(secureContext: SecureContext | undefined): void {
    const { socket } = this
    if (this.replies !== '') socket.write(this.replies, 'latin1')
    this.replies = ''
    this.discard()
    socket.removeAllListeners().pause()
    // Its errors are errors of the TLS socket too.
    socket.on('error', () => undefined)
    const secure = new TLSSocket(socket, { isServer: true, secureContext })
    // The TLS socket is the one to destroy: destroying the other in a handshake ends the process.
    this.socket = secure
    this.handshakeSinceMs = performance.now()
    const fail = (error: Error) => {
      secure.destroy()
      if (this.handshakeSinceMs === null) return
      this.handshakeSinceMs = null
      this.stopReading()
      this.events.onHandshakeFailed()
      this.events.onError(error)
    }
    secure.on('error', fail)
    // Undocumented, but the only event for a handshake that fails on the server's side.
    secure.on('_tlsError', fail)
    secure.once('close', () => {
      fail(new Error('the connection ended in the TLS handshake'))
      socket.destroy()
    })
    secure.once('secure', () => {
      if (this.handshakeSinceMs === null) return
      this.handshakeSinceMs = null
      this.repliedAtMs = performance.now()
      this.tls = { version: secure.getProtocol() ?? 'unknown', cipher: secure.getCipher().name }
      secure.off('error', fail).off('_tlsError', fail)
      secure.on('error', (error: Error) => this.events.onError(error))
      this.events.onSecure()
    })
    this.attach()
  }

  private attach(): void {
    this.socket.on('data', (chunk: Buffer) => this.take(chunk)).resume()
    this.socket.once('close', () => {
      this.stopReading()
      this.events.onClose()
    })
  }

  private take(chunk: Buffer): void {
    if (this.isClosed) return
    this.receivedAtMs = performance.now()
    this.waiting.push(chunk)
    if (this.holds > 0) this.socket.pause()
    else this.read()
  }

  private read(): void {
    while (this.holds === 0) {
      const [chunk] = this.waiting
      if (chunk === undefined) {
        if (this.socket.isPaused()) this.socket.resume()
        return
      }
      if (this.mail === null) this.readLine(chunk)
      else this.readMail(chunk, this.mail)
      if (chunk === this.waiting[0] && this.at === chunk.length) {
        this.waiting.shift()
        this.at = 0
      }
    }
  }

  private readLine(chunk: Buffer): void {
    const end = chunk.indexOf(LF, this.at) + 1
    const to = end === 0 ? chunk.length : end
    const line = this.begunLine + chunk.toString('latin1', this.at, to)
    this.at = to
    this.begunLine = ''
    const command = line.endsWith('\r\n') ? line.slice(0, -2) : line
    if (end === 0 && line.length <= MAX_LINE_BYTES + 1) {
      // One octet more: a CR that may belong to the line's end.
      this.begunLine = line
    } else if (command.length > MAX_LINE_BYTES) {
      this.events.onEndless(REFUSALS.commandTooLong)
    } else {
      this.holdFor(this.events.onLine(command))
      this.lines += 1
      if (this.lines === MAX_LINES_AT_ONCE) {
        this.lines = 0
        this.holds += 1
        setImmediate(this.release)
      }
    }
  }

  private readMail(chunk: Buffer, mail: MailData): void {
    const rest = mail.write(chunk.subarray(this.at))
    this.at = chunk.length - (rest?.length ?? 0)
    if (rest !== null) {
      this.mail = null
      this.holdFor(this.events.onMail())
    } else if (mail.isEndless) {
      this.events.onEndless(REFUSALS.tooLarge)
    } else if (mail.isLarge) {
      this.holds += 1
      this.socket.pause()
      inTurn(this.release)
    }
  }

  private holdFor(answered: Promise<void> | null): void {
    if (answered === null) return
    this.holds += 1
    void answered.then(this.release)
  }

  private writeReplies(): void {
    const { replies, socket } = this
    this.replies = ''
    // A client that has closed its side gets no more replies.
    if (replies === '' || !socket.writable || socket.write(replies, 'latin1')) return
    this.holds += 1
    socket.once('drain', this.release)
  }

  private stopReading(): void {
    this.isClosed = true
    this.discard()
  }

  private discard(): void {
    this.waiting.length = 0
    this.at = 0
    this.begunLine = ''
    this.mail = null
  }
}
