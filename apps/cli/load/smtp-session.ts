import { hostname } from 'node:os'
import { SmtpConnection, type SmtpTarget } from './smtp-connection.js'

export interface SmtpReply {
  code: number
  text: string
}

/** The sender's source of mail. Each mail that was taken has exactly one outcome: accepted, refused or lost. */
export interface Outbox<Mail> {
  /** The next mail that is due, or null. It is started at once. */
  take(): Mail | null
  /** MAIL FROM and RCPT TO. */
  envelopeOf(mail: Mail): { sender: string; recipient: string }
  /** The source, with CRLF line ends, in ASCII, without dot-stuffing. Called when the server is ready for it. */
  sourceOf(mail: Mail): string
  accepted(mail: Mail): void
  refused(mail: Mail, reply: SmtpReply): void
  /** The connection was lost. If the source was sent, the server may have accepted the mail. */
  lost(mail: Mail, isSourceSent: boolean): void
  /** A connection has nothing to do until `SmtpSender.wake`. */
  idle(): void
  /** A connection failed. `reason` is the code of the error or reply, such as ECONNREFUSED or 421. */
  connectionFailed(reason: string): void
}

const HYPHEN = 45
const DIGIT_0 = 48

export interface SmtpSessionEvents {
  /** The session can send mail. */
  ready(): void
  /** It has sent a mail, and no other one has started. */
  free(): void
  /** It has ended; with a reason, unless it was idle or ended by QUIT. */
  closed(reason: string | null): void
}

/** The command whose reply comes next, or `idle`. */
type Step =
  'greeting' | 'ehlo' | 'starttls' | 'idle' | 'mail' | 'rcpt' | 'data' | 'content' | 'empty-content' | 'rset'

/**
 * An SMTP session (RFC 5321). With PIPELINING (RFC 2920), MAIL, RCPT and DATA are sent in one write. If another mail is
 * due when the content is sent, its commands follow in the same write. Replies come in the order of the commands.
 */
export class SmtpSession<Mail> {
  /** Whether a mail was accepted. */
  hasDelivered = false
  private step: Step = 'greeting'
  private readonly connection: SmtpConnection
  private hasPipelining = false
  private hasStartTls = false
  /** The mail that replies are about. */
  private mail: Mail | null = null
  /** The mail whose commands were sent behind the content of `mail`. */
  private following: Mail | null = null
  /** The reply that refused `mail`. */
  private refusal: SmtpReply | null = null

  constructor(
    private readonly target: SmtpTarget,
    private readonly outbox: Outbox<Mail>,
    private readonly events: SmtpSessionEvents,
  ) {
    this.connection = new SmtpConnection(target, {
      line: (line) => this.receiveLine(line),
      encrypted: () => this.sayHello(),
      closed: (failure) => this.closed(failure),
    })
  }

  /** When something was last sent or received, by `performance.now()`. */
  get activeMs(): number {
    return this.connection.activeMs
  }

  get isIdle(): boolean {
    return this.step === 'idle'
  }

  /** Sends a mail. The session must be idle or free. */
  begin(mail: Mail): void {
    this.mail = mail
    this.refusal = null
    this.step = 'mail'
    this.connection.write(this.commandsOf(mail))
  }

  fail(reason: string): void {
    this.connection.fail(reason)
  }

  quit(): void {
    if (this.step === 'idle') this.connection.end('QUIT\r\n')
    else this.connection.destroy()
  }

  private commandsOf(mail: Mail): string {
    const { sender, recipient } = this.outbox.envelopeOf(mail)
    return this.hasPipelining
      ? `MAIL FROM:<${sender}>\r\nRCPT TO:<${recipient}>\r\nDATA\r\n`
      : `MAIL FROM:<${sender}>\r\n`
  }

  private receiveLine(line: string): void {
    const code =
      (line.charCodeAt(0) - DIGIT_0) * 100 +
      (line.charCodeAt(1) - DIGIT_0) * 10 +
      line.charCodeAt(2) -
      DIGIT_0
    if (!(code >= 200 && code <= 599)) {
      this.fail('not SMTP')
      return
    }
    if (this.step === 'ehlo' && code === 250) this.noteExtension(line)
    // A hyphen after the code means that the reply continues (RFC 5321, section 4.2.1).
    if (line.charCodeAt(3) !== HYPHEN) this.reply(code, line)
  }

  private noteExtension(line: string): void {
    const extension = line.slice(4).trim().toUpperCase()
    if (extension === 'PIPELINING') this.hasPipelining = true
    if (extension === 'STARTTLS') this.hasStartTls = true
  }

  private reply(code: number, line: string): void {
    const isRefusal = code >= 400
    switch (this.step) {
      case 'greeting':
      case 'ehlo':
      case 'starttls':
        if (isRefusal) this.fail(String(code))
        else this.greet()
        return
      case 'mail':
      case 'rcpt':
        if (isRefusal) this.refusal ??= { code, text: line.trim() }
        if (code === 421) this.fail('421')
        else this.continueCommands()
        return
      case 'data':
        if (code !== 354) this.refusal ??= { code, text: line.trim() }
        if (code === 421) this.fail('421')
        else if (code === 354) this.sendContent()
        else this.send('rset', 'RSET\r\n')
        return
      case 'content':
        this.settle(isRefusal ? { code, text: line.trim() } : null)
        if (code === 421) this.fail('421')
        else this.proceed()
        return
      case 'empty-content':
        this.send('rset', 'RSET\r\n')
        return
      case 'rset':
        this.settle(this.refusal)
        this.proceed()
        return
      case 'idle':
        // The server ends the session.
        this.connection.destroy()
        return
    }
  }

  private send(step: Step, text: string): void {
    this.step = step
    this.connection.write(text)
  }

  /** The step after the greeting, EHLO or STARTTLS. */
  private greet(): void {
    const mustEncrypt = this.target.tls === 'starttls' && !this.connection.isEncrypted
    if (this.step === 'ehlo' && !mustEncrypt) {
      this.step = 'idle'
      this.events.ready()
    } else if (this.step === 'ehlo') {
      if (this.hasStartTls) this.send('starttls', 'STARTTLS\r\n')
      else this.fail('STARTTLS is not offered')
    } else if (this.step === 'starttls') {
      // What was offered before the encryption may be forged (RFC 3207, section 4.2).
      this.hasPipelining = false
      this.connection.encrypt()
    } else this.sayHello()
  }

  private sayHello(): void {
    this.send('ehlo', `EHLO ${hostname()}\r\n`)
  }

  /** After the reply to MAIL or RCPT. */
  private continueCommands(): void {
    if (!this.hasPipelining && this.refusal !== null) {
      this.send('rset', 'RSET\r\n')
      return
    }
    const isMail = this.step === 'mail'
    this.step = isMail ? 'rcpt' : 'data'
    if (this.hasPipelining || this.mail === null) return
    this.connection.write(
      isMail ? `RCPT TO:<${this.outbox.envelopeOf(this.mail).recipient}>\r\n` : 'DATA\r\n',
    )
  }

  private sendContent(): void {
    if (this.mail === null) return
    if (this.refusal !== null) {
      // The server wants the content although it has refused the recipient (RFC 2920, section 3.1).
      this.send('empty-content', '.\r\n')
      return
    }
    const source = this.outbox.sourceOf(this.mail)
    const stuffed = source.includes('\r\n.') ? source.replaceAll('\r\n.', '\r\n..') : source
    const end = stuffed.endsWith('\r\n') ? '.\r\n' : '\r\n.\r\n'
    this.following = this.hasPipelining ? this.outbox.take() : null
    this.send('content', stuffed + end + (this.following === null ? '' : this.commandsOf(this.following)))
  }

  private settle(refusal: SmtpReply | null): void {
    const { mail } = this
    this.mail = null
    if (mail === null) return
    if (refusal === null) {
      this.hasDelivered = true
      this.outbox.accepted(mail)
    } else this.outbox.refused(mail, refusal)
  }

  /** Continues with the mail whose commands were sent, if there is one. */
  private proceed(): void {
    this.refusal = null
    this.mail = this.following
    this.following = null
    this.step = this.mail === null ? 'idle' : 'mail'
    if (this.mail === null) this.events.free()
  }

  private closed(failure: string | null): void {
    const { mail, following, refusal } = this
    this.mail = this.following = null
    const reason = failure ?? (this.isIdle ? null : 'closed')
    if (mail !== null) {
      if (refusal !== null) this.outbox.refused(mail, refusal)
      else this.outbox.lost(mail, this.step === 'content')
    }
    if (following !== null) this.outbox.lost(following, false)
    this.events.closed(reason)
  }
}
