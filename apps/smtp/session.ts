import { randomUUID } from 'node:crypto'
import type { Socket } from 'node:net'
import type { Envelope } from '#libs/mail/message.js'
import type { RemoteHost } from './connection-limits.js'
import { readHostname } from './path.js'
import { Refusal, REFUSALS, REPLIES, spokeTooEarly, type Answer, type MaybePromise } from './replies.js'
import { SessionBounds } from './session-bounds.js'
import { SessionStream, type StreamEvents } from './session-stream.js'
import { AuthExchange, type SmtpAuth } from './smtp-auth.js'
import { Transaction, type MailSession, type SessionContext } from './transaction.js'

/** The client of a connection. */
export interface Peer {
  remoteAddress: string
  host: RemoteHost
  /** Call it once the connection is closed. */
  release: () => void
  /** Whether the TLS handshake precedes the greeting. */
  isImplicitTls: boolean
}

/** The commands allowed without TLS if the server requires TLS (RFC 3207, section 4). */
const WITHOUT_TLS = new Set(['NOOP', 'EHLO', 'STARTTLS', 'QUIT'])
const AFTER_HELLO = new Set(['MAIL', 'RCPT', 'DATA', 'AUTH'])
/**
 * Commands whose addresses may have non-ASCII characters (RFC 6531, sections 3.3 and 3.7.4), and those whose host name
 * often has them, because clients send the name of their computer.
 */
const INTERNATIONAL = new Set(['MAIL', 'RCPT', 'VRFY', 'EXPN', 'HELO', 'EHLO'])
const PRINTABLE = /^[\x20-\x7e]*$/
const PRINTABLE_OR_NON_ASCII = /^[\x20-\x7e\x80-\xff]*$/
/** A web page can make a browser send an HTTP request to any port. */
const HTTP_REQUEST = /^(OPTIONS|GET|HEAD|POST|PUT|DELETE|TRACE|CONNECT) \/.* HTTP\/\d\.\d$/i
const OFFERED = '250-PIPELINING\r\n250-8BITMIME\r\n250-SMTPUTF8\r\n250-ENHANCEDSTATUSCODES\r\n'
const MAX_HOSTNAME_BYTES = 300
/** RFC 5321, section 4.5.3.1.4: 512 octets, and more for the parameters of extensions. */
const MAX_LINE_BYTES = 2_048
/** How long a client has to close its side after the last reply; less if another connection needs the slot. */
const LINGER_MS = 5_000
const GIVEN_UP_LINGER_MS = 1_000

/**
 * One SMTP session (RFC 5321): greets, answers commands in order, and closes. Everything that a client may do has a
 * limit in number and in time.
 */
export class Session implements StreamEvents, MailSession {
  readonly id = randomUUID()
  readonly remoteAddress: string
  readonly auth: AuthExchange
  readonly bounds: SessionBounds
  /** The argument of HELO or EHLO; null before. */
  helo: string | null = null
  private readonly transaction: Transaction
  private readonly stream: SessionStream
  private isGreeted = false
  private isDraining = false
  /** Whether a command or a complete mail is being processed. */
  private isAnswering = false

  constructor(
    socket: Socket,
    readonly peer: Peer,
    private readonly context: SessionContext,
  ) {
    this.remoteAddress = peer.remoteAddress
    this.auth = new AuthExchange(context.auth)
    this.bounds = new SessionBounds(context.settings, peer.host.group, context.unknownRecipients)
    this.transaction = new Transaction(context, this)
    this.stream = new SessionStream(socket, this)
    if (peer.isImplicitTls) this.stream.startTls(context.secureContext)
    else this.greet()
  }

  get tls(): Envelope['tls'] {
    return this.stream.tls
  }

  /** Greets one turn of the event loop later, to detect clients that don't wait for it (RFC 5321, section 4.3.1). */
  private greet(): void {
    setImmediate(() => {
      this.isGreeted = true
      this.send(`220 ${this.context.settings.mailDomain} ESMTP Mayfly\r\n`)
    })
  }

  maxLineBytes(line: string): number {
    const isAuth = this.auth.isAwaitingResponse || /^AUTH /i.test(line)
    return (isAuth ? this.context.auth.maxLineBytes : null) ?? MAX_LINE_BYTES
  }

  onLine(line: string): Promise<void> | null {
    try {
      const answer = this.answerTo(line)
      if (answer instanceof Promise) return this.sendWhenReady(answer)
      this.send(answer)
    } catch (error) {
      this.send(this.failed(error))
    }
    return null
  }

  private answerTo(line: string): MaybePromise<Answer | null> {
    if (!this.isGreeted) return spokeTooEarly(this.context.settings.mailDomain)
    if (this.auth.isAwaitingResponse)
      return HTTP_REQUEST.test(line) ? REFUSALS.httpRequest : this.auth.respondTo(line)
    const end = line.indexOf(' ')
    const name = (end < 0 ? line : line.slice(0, end)).toUpperCase()
    // Every command counts as idle except RCPT and DATA, which advance a mail.
    if (name !== 'RCPT' && name !== 'DATA' && !this.bounds.countCommand()) return REFUSALS.tooManyCommands
    return this.refusalOf(name, line) ?? this.execute(name, line)
  }

  /** Why a command is not allowed now, regardless of its arguments; null if it is allowed. */
  private refusalOf(name: string, line: string): Refusal | null {
    const { smtpRequireTls, smtpTls } = this.context.settings
    // BDAT is followed by content (RFC 3030), which must not be read as commands.
    if (name === 'BDAT') return REFUSALS.chunkingNotOffered
    const allowed = INTERNATIONAL.has(name) ? PRINTABLE_OR_NON_ASCII : PRINTABLE
    if (!allowed.test(line)) return REFUSALS.notPlain
    if (smtpRequireTls && this.tls === null && !WITHOUT_TLS.has(name)) return REFUSALS.tlsRequired
    if (name === 'STARTTLS' && smtpTls === 'off') return REFUSALS.startTlsNotOffered
    if (name === 'AUTH' && this.authOffer !== 'offered') {
      return this.authOffer === 'off' ? REFUSALS.authNotOffered : REFUSALS.authNeedsTls
    }
    // EXPN would reveal which inboxes exist (RFC 5321, section 7.3).
    if (name === 'EXPN') return REFUSALS.expnNotOffered
    return this.helo === null && AFTER_HELLO.has(name) ? REFUSALS.needsHello : null
  }

  private execute(name: string, line: string): MaybePromise<Answer | null> {
    switch (name) {
      case 'EHLO':
      case 'HELO':
        return this.hello(name, line)
      case 'STARTTLS':
        return this.startTls(line)
      case 'AUTH':
        return this.auth.begin(line)
      case 'MAIL':
        return this.transaction.mailFrom(line)
      case 'RCPT':
        return this.transaction.rcptTo(line)
      case 'DATA':
        return this.startData()
      case 'RSET':
        this.transaction.reset()
        return REPLIES.flushed
      case 'NOOP':
        return REPLIES.ok
      case 'HELP':
        return REPLIES.help
      case 'VRFY':
        return /^VRFY +[^ ]/i.test(line) ? REPLIES.notVerified : REFUSALS.wrongVrfy
      case 'QUIT':
        this.send(REPLIES.bye)
        this.close()
        return null
      default:
        return HTTP_REQUEST.test(line) ? REFUSALS.httpRequest : REFUSALS.unknownCommand
    }
  }

  private hello(name: 'EHLO' | 'HELO', line: string): Answer {
    const [, hostname, ...more] = line.split(' ').filter((word) => word !== '')
    if (hostname === undefined || more.length > 0) {
      return name === 'EHLO' ? REFUSALS.wrongEhlo : REFUSALS.wrongHelo
    }
    if (hostname.length > MAX_HOSTNAME_BYTES) return REFUSALS.wrongHostname
    this.helo = readHostname(hostname).toLowerCase()
    this.transaction.reset()
    const { mailDomain, smtpTls, maxMessageBytes } = this.context.settings
    if (name === 'HELO') return `250 ${mailDomain}\r\n`
    const mechanisms = [...this.context.auth.mechanisms.keys()].join(' ')
    const auth = this.authOffer === 'offered' && this.auth.user === null ? `250-AUTH ${mechanisms}\r\n` : ''
    const startTls = smtpTls !== 'off' && this.tls === null ? '250-STARTTLS\r\n' : ''
    return `250-${mailDomain}\r\n${OFFERED}${auth}${startTls}250 SIZE ${maxMessageBytes}\r\n`
  }

  private startTls(line: string): Answer | null {
    if (line.trim().includes(' ')) return REFUSALS.wrongStartTls
    if (this.tls !== null) return REFUSALS.tlsActive
    this.send(REPLIES.readyForTls)
    this.stream.startTls(this.context.secureContext)
    return null
  }

  /** Discards what the client sent before TLS (RFC 3207, section 4.2). */
  onSecure(): void {
    this.helo = null
    this.auth.user = null
    this.transaction.reset()
    if (!this.isGreeted) this.greet()
  }

  onHandshakeFailed(): void {
    this.context.journal.refused(this, 'handshake-failed', null)
  }

  private startData(): Answer {
    const data = this.transaction.startData()
    if (data instanceof Refusal) return data
    this.stream.receive(data)
    return REPLIES.startMail
  }

  async onMail(): Promise<void> {
    await this.sendWhenReady(this.transaction.finish())
    if (this.isDraining && !this.stream.isClosed) this.refuse(REFUSALS.shuttingDown)
  }

  onTooLong(refusal: Refusal): void {
    this.refuse(refusal)
    this.close()
  }

  onError(error: Error): void {
    this.context.journal.connectionBroke(error)
  }

  onClose(): void {
    if (this.transaction.abandon()) this.context.journal.refused(this, 'disconnected', null)
    this.peer.release()
  }

  /** Closes the session with 421, after the current mail if there is one. */
  drain(): void {
    this.isDraining = true
    if (!this.transaction.isReceiving) this.refuse(REFUSALS.shuttingDown)
  }

  /** Closes the session to free its slot, unless a command is being processed. Returns whether it was closed. */
  giveUp(): boolean {
    if (this.isAnswering) return false
    if (!this.stream.isClosed) this.refuse(REFUSALS.tooManyConnections)
    this.stream.close(GIVEN_UP_LINGER_MS)
    return true
  }

  /** Closes the session if the client or the current mail has taken too long. */
  enforceDeadlines(nowMs: number, isCrowded: boolean): void {
    if (this.stream.isClosed) {
      if (nowMs > this.stream.destroyAtMs) this.destroy()
      return
    }
    const refusal = this.overdue(nowMs, isCrowded)
    if (refusal !== null) this.refuse(refusal)
  }

  private overdue(nowMs: number, isCrowded: boolean): Refusal | null {
    const { smtpCommandTimeoutMs: timeoutMs, smtpHandshakeTimeoutMs } = this.context.settings
    const { receivedAtMs, repliedAtMs, handshakeSinceMs } = this.stream
    if (handshakeSinceMs !== null) {
      return nowMs - handshakeSinceMs > smtpHandshakeTimeoutMs ? REFUSALS.timeout : null
    }
    if (this.transaction.isOverdue(nowMs)) return REFUSALS.timeout
    if (this.isAnswering) return null
    const isIdle = nowMs - Math.max(receivedAtMs, repliedAtMs) > timeoutMs
    if (this.transaction.isReceiving) return isIdle ? REFUSALS.idle : null
    if (isCrowded && this.bounds.isOverCrowdedTimeout(nowMs)) return REFUSALS.closedWhileCrowded
    if (isIdle) return REFUSALS.idle
    return nowMs - repliedAtMs > timeoutMs || this.bounds.hasStalled(nowMs) ? REFUSALS.timeout : null
  }

  destroy(): void {
    this.stream.destroy()
  }

  private get authOffer(): ReturnType<SmtpAuth['offer']> {
    return this.context.auth.offer({ isSecure: this.tls !== null, remoteAddress: this.remoteAddress })
  }

  private send(answer: Answer | null): void {
    if (answer instanceof Refusal) this.refuse(answer)
    else if (answer !== null) this.stream.reply(answer)
  }

  private async sendWhenReady(promise: Promise<Answer | null>): Promise<void> {
    this.isAnswering = true
    const answer = await promise.catch((error: unknown) => this.failed(error))
    this.isAnswering = false
    this.send(answer)
  }

  private failed(error: unknown): Refusal {
    this.context.journal.failed(error)
    return REFUSALS.internalError
  }

  private refuse(refusal: Refusal): void {
    const { reason, code, line, isLast } = refusal
    this.context.journal.refused(this, reason, code)
    if (!this.bounds.countRefusal(reason) && code !== 421) {
      this.refuse(REFUSALS.tooManyErrors)
      return
    }
    this.stream.reply(line)
    if (isLast) this.close()
  }

  private close(): void {
    this.stream.close(Math.min(LINGER_MS, this.context.settings.smtpCommandTimeoutMs))
  }
}
