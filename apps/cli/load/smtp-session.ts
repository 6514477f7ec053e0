import { once } from 'node:events'
import { connect, isIP, type Socket } from 'node:net'
import { hostname } from 'node:os'
import { connect as connectTls } from 'node:tls'

export interface SmtpTarget {
  host: string
  port: number
  tls: 'none' | 'starttls' | 'implicit'
  /** Whether to accept any certificate. */
  isInsecure: boolean
}

export interface SmtpReply {
  code: number
  /** The last line. */
  text: string
}

/**
 * What became of an attempt to send a mail: the reply that accepted or refused it, or how the connection was lost: before
 * the content was sent, or before the reply to it. Then the server may have accepted the mail.
 */
export type Outcome = SmtpReply | 'not-sent' | 'no-reply'

/** Why a mail was not accepted. */
export function errorText(outcome: Outcome): string {
  if (typeof outcome === 'object') return outcome.text
  return outcome === 'not-sent' ? 'connection lost' : 'connection lost before the reply to the content'
}

/** MAIL FROM and RCPT TO. */
interface Envelope {
  sender: string
  recipient: string
}

/** Where a session gets its mail. Each mail that was taken has exactly one outcome. */
export interface Outbox<Mail extends Envelope> {
  /** The next mail that is due, or null. It is started at once. */
  take(): Mail | null
  /** The source, with CRLF line ends, in ASCII, without dot-stuffing. Called when the server is ready for it. */
  sourceOf(mail: Mail): string
  settle(mail: Mail, outcome: Outcome): void
}

interface AwaitedReplies {
  count: number
  replies: SmtpReply[]
  resolve: (replies: SmtpReply[]) => void
}

/** RFC 5321, section 4.5.3.2, allows servers more. */
const REPLY_TIMEOUT_MS = 60_000
const QUIT_WITHIN_MS = 1_000
const MAX_LINE_LENGTH = 4_096

/**
 * An SMTP session (RFC 5321). With PIPELINING (RFC 2920), MAIL, RCPT and DATA are sent in one write. If another mail is
 * due when the content is sent, its commands follow in the same write. Replies come in the order of the commands.
 */
export class SmtpSession {
  /** Why the session failed: the code of an error or reply, such as ECONNREFUSED or 421. Null if it was idle or has quit. */
  failure: string | null = null
  /** Whether a mail was accepted. */
  hasDelivered = false
  private readonly closing = Promise.withResolvers<undefined>()
  private readonly extensions = new Set<string>()
  /** The replies that are still to come. */
  private readonly awaited: AwaitedReplies[] = []
  private socket: Socket
  /** Text behind the last reply that was read. */
  private received = ''
  private isOpen = false

  constructor(private readonly target: SmtpTarget) {
    const { host, port, tls } = target
    const address = { host, port, noDelay: true }
    this.socket = this.listen(
      tls === 'implicit' ? connectTls({ ...address, ...this.tlsOptions() }) : connect(address),
    )
  }

  /** Resolves once the session has ended. */
  get closed(): Promise<undefined> {
    return this.closing.promise
  }

  /** Whether it can send mail. */
  get isReady(): boolean {
    return this.isOpen && this.socket.writable
  }

  /** Resolves with whether the session can send mail. */
  async open(): Promise<boolean> {
    const isGreeted = this.isAccepted(await this.replies(1)) && (await this.sayHello())
    this.isOpen = isGreeted && (this.target.tls !== 'starttls' || (await this.startTls()))
    return this.isOpen
  }

  /** Sends a mail, and others that are due when its content is sent. Resolves once each of them has its outcome. */
  async send<Mail extends Envelope>(first: Mail, outbox: Outbox<Mail>): Promise<void> {
    let beginning = this.begin(first)
    for (let mail: Mail | null = first; mail !== null;) {
      const { refusal, isContentWanted } = await beginning
      if (refusal !== null || !isContentWanted) {
        // The server may want the content although it has refused the recipient (RFC 2920, section 3.1).
        if (isContentWanted) await this.command('.\r\n')
        await this.command('RSET\r\n')
        outbox.settle(mail, refusal ?? 'not-sent')
        return
      }
      const content = stuffed(outbox.sourceOf(mail))
      const following = this.hasPipelining ? outbox.take() : null
      const replying = this.replies(1)
      if (following === null) this.socket.write(content, 'latin1')
      else beginning = this.begin(following, content)
      const [reply] = await replying
      if (reply !== undefined && reply.code < 400) this.hasDelivered = true
      outbox.settle(mail, reply ?? 'no-reply')
      mail = following
    }
  }

  /** Ends the session. A mail in flight is lost. */
  quit(): void {
    if (!this.isIdle) {
      this.socket.destroy()
      return
    }
    this.socket.setTimeout(QUIT_WITHIN_MS)
    this.socket.end('QUIT\r\n')
  }

  private get isIdle(): boolean {
    return this.isOpen && this.awaited.length === 0
  }

  private get hasPipelining(): boolean {
    return this.extensions.has('PIPELINING')
  }

  /**
   * Sends the commands before the content of a mail, behind the `content` of the one before. If the connection is lost,
   * there is no refusal, and no content is wanted.
   */
  private async begin({ sender, recipient }: Envelope, content = '') {
    const commands = [`MAIL FROM:<${sender}>\r\n`, `RCPT TO:<${recipient}>\r\n`, 'DATA\r\n']
    const replies: SmtpReply[] = []
    if (this.hasPipelining)
      replies.push(...(await this.command(content + commands.join(''), commands.length)))
    else {
      for (const command of commands) {
        const [reply] = await this.command(command)
        if (reply !== undefined) replies.push(reply)
        if (reply === undefined || reply.code >= 400) break
      }
    }
    const [, , last] = replies
    const isContentWanted = last?.code === 354
    const refusal = replies.find(({ code }) => code >= 400) ?? (isContentWanted ? null : (last ?? null))
    return { refusal, isContentWanted }
  }

  private async sayHello(): Promise<boolean> {
    this.extensions.clear()
    return this.isAccepted(await this.command(`EHLO ${hostname()}\r\n`))
  }

  private async startTls(): Promise<boolean> {
    if (!this.extensions.has('STARTTLS')) this.fail('STARTTLS is not offered')
    if (!this.isAccepted(await this.command('STARTTLS\r\n'))) return false
    // Replies behind that to STARTTLS may be forged (RFC 3207, section 6).
    if (this.received !== '') this.fail('text before TLS')
    const plain = this.socket.removeAllListeners('data').setTimeout(0)
    this.socket = this.listen(connectTls({ socket: plain, ...this.tlsOptions() }))
    this.socket.once('close', () => plain.destroy())
    const isSecure = once(this.socket, 'secureConnect').then(
      () => true,
      () => false,
    )
    // What was offered before the encryption may be forged too (section 4.2).
    return (await Promise.race([isSecure, this.closed.then(() => false)])) && this.sayHello()
  }

  private tlsOptions() {
    const { host, isInsecure } = this.target
    return { rejectUnauthorized: !isInsecure, servername: isIP(host) === 0 ? host : '' }
  }

  private listen(socket: Socket): Socket {
    return socket
      .on('data', (chunk: Buffer) => this.receive(chunk.toString('latin1')))
      .on('error', (error: NodeJS.ErrnoException) => (this.failure ??= error.code ?? error.message))
      .on('timeout', () => {
        if (!this.isIdle || socket.writableEnded) this.fail('no reply')
      })
      .once('close', () => {
        if (!this.isIdle) this.failure ??= 'closed'
        for (const { replies, resolve } of this.awaited.splice(0)) resolve(replies)
        this.closing.resolve(undefined)
      })
      .setTimeout(REPLY_TIMEOUT_MS)
  }

  private fail(reason: string): void {
    this.failure ??= reason
    this.socket.destroy()
  }

  private command(text: string, count = 1): Promise<SmtpReply[]> {
    if (this.socket.writable) this.socket.write(text, 'latin1')
    return this.replies(count)
  }

  /** The next replies that nothing else awaits; fewer if the connection is lost. */
  private replies(count: number): Promise<SmtpReply[]> {
    if (this.socket.destroyed) return Promise.resolve([])
    return new Promise((resolve) => this.awaited.push({ count, replies: [], resolve }))
  }

  private isAccepted([reply]: readonly SmtpReply[]): boolean {
    if (reply !== undefined && reply.code >= 400) this.fail(String(reply.code))
    return reply !== undefined && reply.code < 400
  }

  private receive(chunk: string): void {
    this.received += chunk
    while (this.awaited.length > 0 && !this.socket.destroyed) {
      const end = this.received.indexOf('\n')
      if (end < 0) break
      this.receiveLine(this.received.slice(0, end).trimEnd())
      this.received = this.received.slice(end + 1)
    }
    // The server ends a session that is idle.
    if (this.isIdle && this.received !== '') this.socket.destroy()
    if (this.received.length > MAX_LINE_LENGTH) this.fail('not SMTP')
  }

  private receiveLine(line: string): void {
    const [, digits, hyphen] = /^([2-5]\d\d)(-?)/.exec(line) ?? []
    if (digits === undefined) {
      this.fail('not SMTP')
      return
    }
    if (!this.isOpen) this.extensions.add(line.slice(4).toUpperCase())
    // A hyphen after the code means that the reply continues (RFC 5321, section 4.2.1).
    if (hyphen === '-') return
    const code = Number(digits)
    const [next] = this.awaited
    if (next !== undefined && next.replies.push({ code, text: line }) === next.count) {
      this.awaited.shift()
      next.resolve(next.replies)
    }
    if (code === 421) this.fail('421')
  }
}

/** The content as it is sent, with its end (RFC 5321, section 4.5.2). */
function stuffed(source: string): string {
  const text = source.includes('\r\n.') ? source.replaceAll('\r\n.', '\r\n..') : source
  return text.endsWith('\r\n') ? `${text}.\r\n` : `${text}\r\n.\r\n`
}
