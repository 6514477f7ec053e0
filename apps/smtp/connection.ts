import type { Socket } from 'node:net'
import { TLSSocket } from 'node:tls'
import type { SMTPServer, SMTPServerAddress } from 'smtp-server'
import { SMTPConnection, type SMTPConnectionOptions } from 'smtp-server/lib/smtp-connection.js'
import type { Envelope } from '#libs/mail/message.js'
import type { InboxId, MessageId } from '#libs/typeid/typeid.js'
import type { IncomingMail } from './acceptance.js'
import { CommandStream } from './command-stream.js'
import type { Journal } from './journal.js'
import { MailData } from './mail-data.js'
import type { MemoryBudget } from './memory-budget.js'
import { acceptedText, reasonOf, Refusal, REFUSALS } from './replies.js'

/** What every connection of an edge shares. */
export interface ConnectionContext {
  memory: MemoryBudget
  maxMessageBytes: number
  commandTimeoutMs: number
  dataTimeoutMs: number
  journal: Journal
  /** The inbox that an accepted RCPT TO reaches. */
  inboxOf: (recipient: SMTPServerAddress) => InboxId | undefined
  /** Never rejects. */
  accept: (mail: IncomingMail) => Promise<MessageId[] | Refusal>
  onClose: (connection: Connection) => void
}

interface MailUnderWay {
  data: MailData
  startedAtMs: number
  isComplete: boolean
}

const MOST_FAULTS = 20
const MOST_REFUSALS = 2_000
const STATUS_CODE = /^[245]\.\d{1,3}\.\d{1,3} /

/**
 * A session of smtp-server, with four things of its own: the greeting comes at once, DATA is read without a
 * stream for each mail, errors are bounded, and each wait has an end whatever trickles in.
 */
export class Connection extends SMTPConnection {
  private mail: MailUnderWay | null = null
  private waitingSinceMs = performance.now()
  /** Since the last accepted mail. */
  private faults = 0
  private refusals = 0
  private isDraining = false
  private isGone = false

  constructor(
    server: SMTPServer,
    socket: Socket | TLSSocket,
    options: SMTPConnectionOptions | null,
    private readonly context: ConnectionContext,
  ) {
    super(server, socket, options)
  }

  /**
   * Without the 100 ms by which smtp-server holds its greeting back. `connectionReady` itself takes a turn of the
   * event loop, enough to see what a client has sent already instead of waiting (RFC 5321, section 4.3.1): such
   * a client is refused.
   */
  override init(): void {
    this._setListeners(() => this.connectionReady())
  }

  /** Closes the session with 421, after the mail under way where there is one. */
  drain(): void {
    this.isDraining = true
    if (this.mail === null) this.refuse(REFUSALS.shuttingDown)
  }

  destroy(): void {
    this._socket.destroy()
  }

  /** Closes the session where the client, or a mail under way, has taken too long. */
  enforceDeadlines(nowMs: number): void {
    if (this._closing) return
    const { dataTimeoutMs, commandTimeoutMs } = this.context
    const isOverdue =
      this.mail === null
        ? !this._handlerPending && nowMs - this.waitingSinceMs > commandTimeoutMs
        : nowMs - this.mail.startedAtMs > dataTimeoutMs
    if (isOverdue) this.refuse(REFUSALS.timeout)
  }

  override send(code: number, data?: string | string[] | null, context?: string | false): void {
    this.waitingSinceMs = performance.now()
    const text = typeof data === 'string' ? data : ''
    if (code >= 400) {
      const reason = reasonOf(code, text)
      this.context.journal.refused(this.session, reason, code)
      if (reason === 'protocol-error') this.faults += 1
      this.refusals += 1
      if (code !== 421 && (this.faults >= MOST_FAULTS || this.refusals >= MOST_REFUSALS)) {
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
    parser.on('error', () => {
      this.refuse(REFUSALS.commandTooLong)
      this.close()
    })
    return parser
  }

  /** Leaves the address as the client wrote it; smtp-server turns domains into Unicode. */
  override _parseAddressCommand(name: string, command: Buffer | string): ParsedAddress {
    const parsed = super._parseAddressCommand(name, command)
    if (parsed === false) return false
    const [, address = parsed.address] = /^[^:]*:\s*<(?:@[^<>:]*:)?([^<>]*)>/.exec(command.toString()) ?? []
    return { ...parsed, address }
  }

  /** Not offered, since it would tell who has an inbox (RFC 5321, section 7.3). */
  handler_EXPN(_command: Buffer, callback: () => void): void {
    this.send(502, '5.5.1 EXPN is not offered')
    callback()
  }

  override handler_DATA(_command: Buffer, callback: () => void): void {
    const parser = this._parser
    const { mailFrom, rcptTo } = this.session.envelope
    if (rcptTo.length === 0) {
      this.send(503, '5.5.1 need RCPT command')
    } else if (parser instanceof CommandStream) {
      const declaredBytes = declaredSize(mailFrom)
      const data = MailData.begin(
        { maxBytes: this.context.maxMessageBytes, declaredBytes },
        this.context.memory,
      )
      if (data === null) {
        this.refuse(REFUSALS.memoryFull)
      } else {
        const mail = { data, startedAtMs: performance.now(), isComplete: false }
        this.mail = mail
        parser.receive(data, (readOn) => void this.finish(mail, readOn))
        this.send(354, 'End data with <CR><LF>.<CR><LF>')
      }
    }
    callback()
  }

  override _onClose(): void {
    super._onClose()
    if (this.isGone) return
    this.isGone = true
    if (this.mail?.isComplete === false) {
      this.mail.data.release()
      this.context.journal.refused(this.session, 'disconnected', null)
    }
    this.context.onClose(this)
  }

  private async finish(mail: MailUnderWay, readOn: () => void): Promise<void> {
    mail.isComplete = true
    this._handlerPending = true
    const outcome = await this.judge(mail)
    mail.data.release()
    this._handlerPending = false
    this.mail = null
    if (outcome instanceof Refusal) {
      this.refuse(outcome)
    } else {
      this.faults = 0
      this.refusals = 0
      this._unrecognizedCommands = 0
      this.send(250, acceptedText(outcome))
    }
    this._transactionCounter += 1
    this._resetSession()
    if (this.isDraining && !this._closing) this.refuse(REFUSALS.shuttingDown)
    readOn()
  }

  private async judge({ data, startedAtMs }: MailUnderWay): Promise<MessageId[] | Refusal> {
    const content = data.content()
    if (content.state !== 'whole') return REFUSAL_OF_CONTENT[content.state]
    const { journal, dataTimeoutMs, inboxOf, accept } = this.context
    const recipients = this.session.envelope.rcptTo.flatMap((recipient) => {
      const inboxId = inboxOf(recipient)
      return inboxId === undefined ? [] : [{ inboxId, rcptTo: recipient.address }]
    })
    const mail = {
      raw: content.raw,
      trace: this.trace(),
      recipients,
      deadlineMs: startedAtMs + dataTimeoutMs,
    }
    const receivedAtMs = performance.now()
    const outcome = await accept(mail)
    if (!(outcome instanceof Refusal)) {
      const acceptMs = performance.now() - receivedAtMs
      journal.mailAccepted(this.session, mail, outcome, { receiveMs: receivedAtMs - startedAtMs, acceptMs })
    }
    return outcome
  }

  private trace(): Omit<Envelope, 'rcptTo'> {
    const { envelope, hostNameAppearsAs, remoteAddress } = this.session
    const socket = this._socket
    const tls =
      socket instanceof TLSSocket
        ? { version: socket.getProtocol() ?? 'unknown', cipher: socket.getCipher().name }
        : null
    return {
      mailFrom: envelope.mailFrom === false ? '' : envelope.mailFrom.address,
      helo: hostNameAppearsAs,
      remoteAddress,
      tls,
    }
  }

  private refuse({ responseCode, message }: Refusal): void {
    this.send(responseCode, message)
  }
}

type ParsedAddress = ReturnType<SMTPConnection['_parseAddressCommand']>

const REFUSAL_OF_CONTENT = {
  'too-large': REFUSALS.tooLarge,
  'memory-full': REFUSALS.memoryFull,
  'bare-line-break': REFUSALS.bareLineBreak,
} as const

/** SIZE as MAIL FROM gave it (RFC 1870, section 6); null where it did not. */
export function declaredSize(mailFrom: SMTPServerAddress | false): number | null {
  const size = mailFrom === false || mailFrom.args === false ? undefined : mailFrom.args['SIZE']
  return typeof size === 'string' ? Number(size) : null
}
