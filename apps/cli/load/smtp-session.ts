import { connect, isIP, type OnReadOpts, type Socket } from 'node:net'
import { hostname } from 'node:os'
import { connect as connectTls } from 'node:tls'

export type TlsMode = 'none' | 'starttls' | 'implicit'

export interface SmtpTarget {
  host: string
  port: number
  tls: TlsMode
  /** Accepts any certificate. */
  isInsecure: boolean
}

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

const MAX_LINE_LENGTH = 4_096
/** Replies of all sessions: each is taken out at once. */
const RECEIVED = Buffer.alloc(16_384)
const LINE_FEED = '\n'
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
  /** When something was last sent or received, by `performance.now()`. */
  activeMs = performance.now()
  /** Whether a mail was accepted. */
  hasDelivered = false
  private step: Step = 'greeting'
  private socket: Socket
  private isEncrypted: boolean
  private hasPipelining = false
  private hasStartTls = false
  /** The beginning of a line. */
  private received = ''
  /** The mail that replies are about. */
  private mail: Mail | null = null
  /** The mail whose commands were sent behind the content of `mail`. */
  private following: Mail | null = null
  /** The reply that refused `mail`. */
  private refusal: SmtpReply | null = null
  private failure: string | null = null

  constructor(
    private readonly target: SmtpTarget,
    private readonly outbox: Outbox<Mail>,
    private readonly events: SmtpSessionEvents,
  ) {
    const { host, port, tls } = target
    this.isEncrypted = tls === 'implicit'
    const address = { host, port, noDelay: true }
    this.socket = this.isEncrypted
      ? connectTls({ ...address, ...this.tlsOptions() })
      : connect({ ...address, onread: this.onread() })
    this.listen()
    this.socket.once('close', () => this.closed())
  }

  get isIdle(): boolean {
    return this.step === 'idle'
  }

  /** Sends a mail. The session must be idle or free. */
  begin(mail: Mail): void {
    this.mail = mail
    this.refusal = null
    this.step = 'mail'
    this.write(this.commandsOf(mail))
  }

  fail(reason: string): void {
    this.failure ??= reason
    this.socket.destroy()
  }

  quit(): void {
    if (this.step === 'idle') this.socket.end('QUIT\r\n')
    else this.socket.destroy()
  }

  private listen(): void {
    if (this.isEncrypted) this.socket.on('data', (chunk: Buffer) => this.receive(chunk.toString('latin1')))
    this.socket.on('error', (error: NodeJS.ErrnoException) => {
      this.failure ??= error.code ?? error.message
    })
  }

  private tlsOptions() {
    const { host, isInsecure } = this.target
    const servername = isIP(host) === 0 ? host : ''
    return { rejectUnauthorized: !isInsecure, servername }
  }

  /** Reads plain text without a new buffer for each reply. */
  private onread(): OnReadOpts {
    return {
      buffer: RECEIVED,
      callback: (length) => {
        this.receive(RECEIVED.toString('latin1', 0, length))
        return true
      },
    }
  }

  private write(text: string): void {
    this.activeMs = performance.now()
    this.socket.write(text, 'latin1')
  }

  private commandsOf(mail: Mail): string {
    const { sender, recipient } = this.outbox.envelopeOf(mail)
    return this.hasPipelining
      ? `MAIL FROM:<${sender}>\r\nRCPT TO:<${recipient}>\r\nDATA\r\n`
      : `MAIL FROM:<${sender}>\r\n`
  }

  private receive(chunk: string): void {
    this.activeMs = performance.now()
    const { socket } = this
    const text = this.received + chunk
    let start = 0
    for (let end = text.indexOf(LINE_FEED); end >= 0; end = text.indexOf(LINE_FEED, start)) {
      this.receiveLine(text.slice(start, end))
      start = end + 1
      if (socket.destroyed || this.socket !== socket) break
    }
    this.received = text.slice(start)
    // Replies behind that to STARTTLS may be forged (RFC 3207, section 6).
    if (this.socket !== socket && this.received !== '') this.fail('text before TLS')
    if (this.received.length > MAX_LINE_LENGTH) this.fail('not SMTP')
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
        this.socket.destroy()
        return
    }
  }

  private send(step: Step, text: string): void {
    this.step = step
    this.write(text)
  }

  /** The step after the greeting, EHLO or STARTTLS. */
  private greet(): void {
    const mustEncrypt = this.target.tls === 'starttls' && !this.isEncrypted
    if (this.step === 'ehlo' && !mustEncrypt) {
      this.step = 'idle'
      this.events.ready()
    } else if (this.step === 'ehlo') {
      if (this.hasStartTls) this.send('starttls', 'STARTTLS\r\n')
      else this.fail('STARTTLS is not offered')
    } else if (this.step === 'starttls') this.encrypt()
    else this.send('ehlo', `EHLO ${hostname()}\r\n`)
  }

  private encrypt(): void {
    const plain = this.socket
    this.socket = connectTls({ socket: plain, ...this.tlsOptions() })
    this.isEncrypted = true
    // What was offered before the encryption may be forged (RFC 3207, section 4.2).
    this.hasPipelining = false
    this.listen()
    this.socket.once('secureConnect', () => this.send('ehlo', `EHLO ${hostname()}\r\n`))
    this.socket.once('close', () => plain.destroy())
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
    this.write(isMail ? `RCPT TO:<${this.outbox.envelopeOf(this.mail).recipient}>\r\n` : 'DATA\r\n')
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

  private closed(): void {
    const { mail, following, refusal } = this
    this.mail = this.following = null
    const reason = this.failure ?? (this.isIdle ? null : 'closed')
    if (mail !== null) {
      if (refusal !== null) this.outbox.refused(mail, refusal)
      else this.outbox.lost(mail, this.step === 'content')
    }
    if (following !== null) this.outbox.lost(following, false)
    this.events.closed(reason)
  }
}
