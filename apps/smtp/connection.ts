import type { Socket } from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'
import { TLSSocket } from 'node:tls'
import type { SMTPServer } from 'smtp-server'
import type { SMTPConnectionOptions } from 'smtp-server/lib/smtp-connection.js'
import type { Envelope } from '#libs/mail/message.js'
import { admissionOf, type SessionState } from './command-admission.js'
import { CommandStream } from './command-stream.js'
import type { ConnectionContext, Peer } from './connection-context.js'
import { MailReception } from './mail-reception.js'
import type { AuthenticatedUser } from './smtp-auth.js'
import { acceptedText, reasonOf, Refusal, REFUSALS } from './replies.js'
import { SessionBounds } from './session-bounds.js'
import { Transaction } from './transaction.js'
import { UpgradableConnection } from './upgradable-connection.js'

/** In which a client reads why its session was closed for another. */
const GIVEN_UP_LINGER_MS = 1_000
const STATUS_CODE = /^[245]\.\d{1,3}\.\d{1,3} /

/**
 * A session of smtp-server, with things of its own: envelopes are read by the grammar of RFC 5321, DATA without a
 * stream for each mail, and everything that a client may do has an end, in number and in time, whatever trickles in.
 */
export class Connection extends UpgradableConnection {
  private transaction: Transaction
  private readonly reception: MailReception
  private waitingSinceMs = performance.now()
  private readonly bounds: SessionBounds
  private isDraining = false
  private isGone = false
  /** Set while `refuse` sends a reply, so that `send` logs its reason. */
  private refusal: Refusal | null = null
  /** Whether the next line is an AUTH response, not a command. */
  private isAuthenticating = false

  constructor(
    server: SMTPServer,
    socket: Socket,
    options: SMTPConnectionOptions,
    readonly peer: Peer,
    private readonly context: ConnectionContext,
    private readonly onGone: (connection: Connection) => void,
  ) {
    super(server, socket, options)
    this.needsUpgrade = peer.isImplicitTls
    this.bounds = new SessionBounds(context.bounds)
    this.reception = new MailReception(context)
    this.transaction = this.begin()
  }

  /** Closes the session with 421, after the mail under way where there is one. */
  drain(): void {
    this.isDraining = true
    if (!this.reception.isUnderWay) this.refuse(REFUSALS.shuttingDown)
  }

  /**
   * Closes the session for a connection of another address, unless a command or a whole mail is being worked on. Returns
   * whether it did.
   */
  giveUp(): boolean {
    if (this._handlerPending) return false
    if (!this._closing) this.refuse(REFUSALS.tooManyConnections)
    // A client that does not close its side would hold the socket.
    setTimeout(() => this.destroy(), GIVEN_UP_LINGER_MS).unref()
    return true
  }

  /** Closes the session if the client, or a mail under way, has taken too long. */
  enforceDeadlines(nowMs: number, isCrowded: boolean): void {
    if (this._closing) return
    const { commandTimeoutMs, handshakeTimeoutMs } = this.context
    let isOverdue = false
    if (this.handshake !== null) {
      isOverdue = this.handshake.hasTakenLongerThan(handshakeTimeoutMs, nowMs)
    } else if (this.reception.isUnderWay) {
      isOverdue = this.reception.isOverdue(nowMs)
    } else if (!this._handlerPending) {
      if (isCrowded && this.bounds.isOverCrowdedTimeout(nowMs)) {
        this.refuse(REFUSALS.closedWhileCrowded)
        return
      }
      isOverdue = nowMs - this.waitingSinceMs > commandTimeoutMs || this.bounds.hasStalled(nowMs)
    }
    if (isOverdue) this.refuse(REFUSALS.timeout)
  }

  override send(code: number, data?: string | string[] | null, context?: string | false): void {
    this.waitingSinceMs = performance.now()
    this.isAuthenticating = code === 334
    const text = typeof data === 'string' ? data : ''
    if (code >= 400) {
      const reason = this.refusal?.reason ?? reasonOf(code, text)
      this.context.journal.refused(this.session, reason, code)
      // This one counts in the bounds too, which have one limit for all errors.
      this._unrecognizedCommands = 0
      if (!this.bounds.mayGoOn(reason) && code !== 421) {
        this.refuse(REFUSALS.tooManyErrors)
        return
      }
    }
    super.send(code, data, STATUS_CODE.test(text) ? false : context)
  }

  override _createParser(): CommandStream {
    const parser = new CommandStream({ maxCommandLength: this._server.options.maxCommandLength })
    parser.oncommand = (command, next) => this._onCommand(command, next)
    // The parser's one error: a command line past its limit.
    parser.on('error', () => this.cut(REFUSALS.commandTooLong))
    return parser
  }

  override _onCommand(command: Buffer, next: () => void = () => undefined): void {
    if (this._closing) return
    if (this._ready && !this._upgrading && !this.isAuthenticating) {
      const admission = admissionOf(command, this.state())
      if (admission.isIdle && !this.bounds.mayCommand()) {
        this.refuse(REFUSALS.tooManyCommands)
        return
      }
      if (admission.refusal !== null) {
        this.refuse(admission.refusal)
        if (admission.isLast) this.close()
        else setImmediate(() => this._whenWritable(next))
        return
      }
    }
    super._onCommand(command, next)
  }

  /** Whether EHLO lists a command, and the session knows it. */
  override _isSupported(command: string): boolean {
    return super._isSupported(command) && (command !== 'AUTH' || this.state().auth === 'offered')
  }

  override handler_MAIL(command: Buffer, callback: () => void): void {
    void this.conclude(this.beginMail(command), '2.1.0 Accepted', callback)
  }

  override handler_RCPT(command: Buffer, callback: () => void): void {
    void this.conclude(this.addRecipient(command), '2.1.5 Accepted', callback)
  }

  override handler_DATA(_command: Buffer, callback: () => void): void {
    const refusal = this.transaction.recipientCount === 0 ? REFUSALS.needsRecipient : this.receive()
    if (refusal === null) this.send(354, 'End data with <CR><LF>.<CR><LF>')
    else this.refuse(refusal)
    callback()
  }

  override _resetSession(): void {
    super._resetSession()
    this.transaction = this.begin()
  }

  override _onClose(): void {
    super._onClose()
    if (this.isGone) return
    this.isGone = true
    if (this.reception.abandon()) this.context.journal.refused(this.session, 'disconnected', null)
    this.onGone(this)
  }

  private begin(): Transaction {
    const { maxMessageBytes, maxRecipients, auth, refusalOfMail, resolve } = this.context
    const hasRoomFor = (bytes: number) => this.peer.host.memory.hasRoomFor(bytes)
    const senderKey = () => auth.senderKey(this.user())
    const { remoteAddress } = this
    const limits = { maxMessageBytes, maxRecipients, offersAuth: !auth.isOff }
    return new Transaction({ ...limits, remoteAddress, hasRoomFor, refusalOfMail, senderKey, resolve })
  }

  private state(): SessionState {
    const { auth, requiresTls, offersTls } = this.context
    const { secure: isSecure, remoteAddress } = this
    return { requiresTls, isSecure, offersTls, auth: auth.offer({ isSecure, remoteAddress }) }
  }

  /** What Auth gave to smtp-server, which keeps it as `any`. */
  private user(): AuthenticatedUser | null {
    const { user } = this.session as { user?: AuthenticatedUser | false }
    return user === undefined || user === false ? null : user
  }

  protected override secured(): void {
    this.waitingSinceMs = performance.now()
  }

  protected override handshakeFailed(error: Error): void {
    this.context.journal.refused(this.session, 'handshake-failed', null)
    this.context.journal.connectionBroke(error)
  }

  private async conclude(
    checking: Promise<Refusal | null>,
    text: string,
    callback: () => void,
  ): Promise<void> {
    const refusal = await checking.catch((error: unknown) => {
      this.context.journal.failed(error)
      return REFUSALS.internalError
    })
    if (refusal === null) this.send(250, text)
    else this.refuse(refusal)
    callback()
  }

  private async beginMail(command: Buffer): Promise<Refusal | null> {
    const refusal = await this.transaction.begin(command)
    if (refusal === null) this.bounds.mailBegan()
    return refusal
  }

  private async addRecipient(command: Buffer): Promise<Refusal | null> {
    const outcome = await this.transaction.add(command)
    if (outcome === 'added') {
      this.peer.guesses.known()
      return null
    }
    if (outcome === 'discarded') return null
    // A repeated recipient does not advance the mail.
    if (outcome === 'repeated') return this.bounds.mayCommand() ? null : REFUSALS.tooManyCommands
    if (outcome.reason !== 'unknown-recipient') return outcome
    const delayMs = this.peer.guesses.guessed()
    if (delayMs === null) return REFUSALS.tooManyUnknown
    if (delayMs > 0) await pause(delayMs, undefined, { ref: false })
    return outcome
  }

  private receive(): Refusal | null {
    // What closes the connection takes the stream along.
    if (!(this._parser instanceof CommandStream)) return REFUSALS.shuttingDown
    const { transaction, session, peer } = this
    return this.reception.begin(
      { transaction, session, host: peer.host, trace: this.trace() },
      this._parser,
      { onWhole: (readOn) => void this.finish(readOn), onEndless: () => this.cut(REFUSALS.tooLarge) },
    )
  }

  private async finish(readOn: () => void): Promise<void> {
    this._handlerPending = true
    const outcome = await this.reception.finish()
    this._handlerPending = false
    if (outcome instanceof Refusal) {
      this.refuse(outcome)
    } else {
      this.bounds.delivered()
      this.send(250, acceptedText(outcome))
    }
    this._resetSession()
    if (this.isDraining && !this._closing) this.refuse(REFUSALS.shuttingDown)
    readOn()
  }

  private trace(): Omit<Envelope, 'rcptTo'> {
    const { hostNameAppearsAs, remoteAddress } = this.session
    const socket = this._socket
    const tls =
      socket instanceof TLSSocket
        ? { version: socket.getProtocol() ?? 'unknown', cipher: socket.getCipher().name }
        : null
    return { mailFrom: this.transaction.mailFrom, helo: hostNameAppearsAs, remoteAddress, tls }
  }

  private refuse(refusal: Refusal): void {
    this.refusal = refusal
    this.send(refusal.responseCode, refusal.message)
    this.refusal = null
  }

  private cut(refusal: Refusal): void {
    this.refuse(refusal)
    this.close()
  }
}
