import type { Socket } from 'node:net'
import { type SecureContext, TLSSocket } from 'node:tls'
import type { Envelope } from '#libs/mail/message.js'
import type { MailData } from './mail-data.js'
import { type Refusal, REFUSALS } from './replies.js'

const LF = 0x0a
/** Lines per turn of the event loop, so that other sessions are served and replies are sent. */
const MAX_LINES_PER_TURN = 100
/** Large mails that are read in one turn of the event loop, 64 KiB each. */
const MAX_READS_PER_TURN = 8

const turns: (() => void)[] = []

/**
 * Schedules the next read of a large mail, a few mails per turn of the event loop. Node reads up to 2 MiB from a socket
 * in one turn, so a few hundred connections could block all others for seconds.
 */
function scheduleRead(read: () => void): void {
  turns.push(read)
  if (turns.length === 1) setImmediate(takeTurns)
}

function takeTurns(): void {
  const reads = turns.splice(0, MAX_READS_PER_TURN)
  // Before reading, because a mail with more data schedules itself again at once, and the turn if the queue is empty.
  if (turns.length > 0) setImmediate(takeTurns)
  for (const read of reads) read()
}

export interface StreamEvents {
  /** The limit of a line that begins with these characters, without its CRLF. */
  maxLineBytes: (line: string) => number
  /**
   * Called with a line in latin1, without its CRLF, or with its bare LF. Reading continues once the promise has
   * resolved, or at once without a promise. The promise never rejects.
   */
  onLine: (line: string) => Promise<void> | null
  /** The mail is complete. Reading continues once the promise has resolved. It never rejects. */
  onMail: () => Promise<void>
  /** A line or a mail is so long that its end is not awaited. */
  onTooLong: (refusal: Refusal) => void
  /** The TLS handshake is complete. */
  onSecure: () => void
  onHandshakeFailed: () => void
  onError: (error: Error) => void
  /** The connection is closed. Called once. */
  onClose: () => void
}

/**
 * The socket of a session: lines and the data of mails come in, replies go out.
 *
 * A line is passed on once the previous one is answered, so pipelined commands (RFC 2920) wait. While they wait, and
 * while the client does not read its replies, nothing more is read. Replies of one turn of the event loop are sent
 * together. An incomplete line at the end of the connection is ignored.
 */
export class SessionStream {
  /** When bytes last arrived, on the clock of `performance.now()`. */
  receivedAtMs = performance.now()
  /** When the last reply was sent, or the session started or switched to TLS. */
  repliedAtMs = performance.now()
  /** When the current TLS handshake started; null if there is none. */
  handshakeSinceMs: number | null = null
  /** Null without TLS. */
  tls: Envelope['tls'] = null
  isClosed = false
  /** When to destroy a socket whose client has not closed its side. */
  destroyAtMs = Infinity
  /** Chunks that have arrived and are not read yet, the first one from `at`. */
  private readonly waiting: Buffer[] = []
  private at = 0
  private partialLine = ''
  private mail: MailData | null = null
  private lines = 0
  /** The number of reasons to pause reading. */
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

  /** Reads the following bytes as a mail, up to its end. */
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
   * Ends the connection after the last reply, or at once during a TLS handshake. What the client still sends is read
   * and discarded, because unread data would reset the connection before the client has read the reply. Sets
   * `destroyAtMs`, for a client that does not close its side.
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
   * Upgrades to TLS. Unread plaintext is discarded (RFC 3207, section 4.2). A failed handshake ends only this
   * connection.
   */
  startTls(secureContext: SecureContext | undefined): void {
    const { socket } = this
    if (this.replies !== '') socket.write(this.replies, 'latin1')
    this.replies = ''
    this.discard()
    socket.removeAllListeners().pause()
    // The TLS socket reports the same errors.
    socket.on('error', () => undefined)
    const secure = new TLSSocket(socket, { isServer: true, secureContext })
    // Destroy only the TLS socket from now on: destroying the inner one during a handshake crashes the process.
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
    // Undocumented, but the only event for a handshake that fails on the server side.
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
    const line = this.partialLine + chunk.toString('latin1', this.at, to)
    this.at = to
    this.partialLine = ''
    const command = line.endsWith('\r\n') ? line.slice(0, -2) : line
    const maxBytes = this.events.maxLineBytes(line)
    if (end === 0 && line.length <= maxBytes + 1) {
      // One octet more than the limit, because it may be the CR of the line's CRLF.
      this.partialLine = line
    } else if (command.length > maxBytes) {
      this.events.onTooLong(REFUSALS.commandTooLong)
    } else {
      this.holdFor(this.events.onLine(command))
      this.lines += 1
      if (this.lines === MAX_LINES_PER_TURN) {
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
    } else if (mail.isTooLong) {
      this.events.onTooLong(REFUSALS.tooLarge)
    } else if (mail.isLarge) {
      this.holds += 1
      this.socket.pause()
      scheduleRead(this.release)
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
    // A socket that is no longer writable gets no more replies.
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
    this.partialLine = ''
    this.mail = null
  }
}
