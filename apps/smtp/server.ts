import type { Socket } from 'node:net'
import { SMTPServer, type SMTPServerAddress, type SMTPServerSession } from 'smtp-server'
import type { SMTPConnectionOptions } from 'smtp-server/lib/smtp-connection.js'
import type { Settings } from '#libs/config/settings.js'
import type { InboxId, MessageId } from '#libs/typeid/typeid.js'
import type { Acceptance, IncomingMail } from './acceptance.js'
import type { Certificate } from './certificate.js'
import { Connection, declaredSize, type ConnectionContext } from './connection.js'
import { ConnectionLimits, plainAddress } from './connection-limits.js'
import type { Journal } from './journal.js'
import { MemoryBudget } from './memory-budget.js'
import type { Recipients } from './recipients.js'
import { Refusal, REFUSALS } from './replies.js'

export interface EdgeServerOptions {
  settings: Settings
  certificate: Certificate
  recipients: Recipients
  acceptance: Acceptance
  journal: Journal
}

type Answer = (refusal?: Error | null) => void

/** RFC 5321, section 4.5.3.1.4: 512 octets, and room for the extensions' parameters. */
const MOST_COMMAND_BYTES = 2_048
/** Sockets past the limit that are there to be told so. */
const REFUSED_AT_ONCE = 64
const REFUSED_LINGER_MS = 1_000
const SWEEP_MS = 1_000
/** Of one mail in one inbox: each tag of an address is a recipient of its own. */
const MOST_COPIES = 10

/** smtp-server with Mayfly's sessions in it. */
export class EdgeServer extends SMTPServer {
  private readonly open = new Set<Connection>()
  private readonly inboxes = new WeakMap<SMTPServerAddress, InboxId>()
  private readonly underWay = new Set<Promise<unknown>>()
  private readonly limits: ConnectionLimits
  private readonly context: ConnectionContext
  private readonly sweeping: NodeJS.Timeout
  private isDraining = false

  constructor(private readonly edge: EdgeServerOptions) {
    const { settings, certificate } = edge
    super({
      ...certificate,
      name: settings.mailDomain,
      banner: 'Mayfly',
      heloResponse: '%s',
      logger: false,
      disabledCommands: ['AUTH', 'XCLIENT', 'XFORWARD', 'WIZ', 'SHELL', 'KILL'],
      disableReverseLookup: true,
      hideENHANCEDSTATUSCODES: false,
      size: settings.maxMessageBytes,
      maxRecipients: settings.smtpMaxRecipients,
      maxCommandLength: MOST_COMMAND_BYTES,
      socketTimeout: settings.smtpCommandTimeoutMs,
    })
    this.limits = new ConnectionLimits(settings.smtpMaxConnections, settings.smtpMaxConnectionsPerAddress)
    this.server.maxConnections = settings.smtpMaxConnections + REFUSED_AT_ONCE
    this.context = {
      memory: new MemoryBudget(settings.smtpMemoryBytes),
      maxMessageBytes: settings.maxMessageBytes,
      commandTimeoutMs: settings.smtpCommandTimeoutMs,
      dataTimeoutMs: settings.smtpDataTimeoutMs,
      journal: edge.journal,
      inboxOf: (recipient) => this.inboxes.get(recipient),
      accept: (mail) => this.accept(mail),
      onClose: (connection) => this.left(connection),
    }
    this.on('error', (error) => edge.journal.connectionBroke(error))
    const sweepMs = Math.min(SWEEP_MS, settings.smtpCommandTimeoutMs / 4)
    this.sweeping = setInterval(() => this.sweep(), sweepMs).unref()
  }

  override connect(socket: Socket, socketOptions: SMTPConnectionOptions | null = null): void {
    // What has closed before it got here will not tell so again.
    if (socket.destroyed) return
    const address = plainAddress(socket.remoteAddress)
    if (this.isDraining || !this.limits.tryEnter(address)) {
      this.turnAway(socket, this.isDraining ? REFUSALS.shuttingDown : REFUSALS.tooManyConnections)
      return
    }
    const connection = new Connection(this, socket, socketOptions, this.context)
    this.connections.add(connection)
    this.open.add(connection)
    this.edge.journal.connectionsAre(this.limits.count)
    connection.on('error', (error) => this.edge.journal.connectionBroke(error))
    connection.init()
  }

  override onMailFrom(address: SMTPServerAddress, _session: SMTPServerSession, answer: Answer): void {
    const declaredBytes = declaredSize(address) ?? 0
    if (!this.context.memory.hasRoomFor(declaredBytes)) {
      answer(REFUSALS.memoryFull)
      return
    }
    void this.edge.recipients.refusalOfMail().then(answer)
  }

  override onRcptTo(address: SMTPServerAddress, session: SMTPServerSession, answer: Answer): void {
    void this.edge.recipients.resolve(address.address).then((found) => {
      if (found instanceof Refusal) {
        answer(found)
        return
      }
      const { rcptTo } = session.envelope
      const copies = rcptTo.filter((recipient) => this.inboxes.get(recipient) === found).length
      if (copies < MOST_COPIES) this.inboxes.set(address, found)
      answer(copies < MOST_COPIES ? null : REFUSALS.tooManyTags)
    })
  }

  /** Resolves once every connection is closed and every mail under way settled, at the latest after `withinMs`. */
  async drain(withinMs: number): Promise<void> {
    this.isDraining = true
    const closed = new Promise<void>((resolve) => this.server.close(() => resolve()))
    for (const connection of this.open) connection.drain()
    const { promise: expired, resolve: expire } = Promise.withResolvers<undefined>()
    const timer = setTimeout(() => {
      for (const connection of this.open) connection.destroy()
      expire(undefined)
    }, withinMs)
    await Promise.race([expired, closed.then(() => Promise.all(this.underWay))])
    clearTimeout(timer)
    clearInterval(this.sweeping)
  }

  private accept(mail: IncomingMail): Promise<MessageId[] | Refusal> {
    const accepted = this.edge.acceptance.accept(mail).catch((error: unknown) => {
      this.edge.journal.failed(error)
      return REFUSALS.internalError
    })
    this.underWay.add(accepted)
    return accepted.finally(() => this.underWay.delete(accepted))
  }

  private left(connection: Connection): void {
    this.open.delete(connection)
    this.limits.leave(connection.remoteAddress)
    this.edge.journal.connectionsAre(this.limits.count)
  }

  private sweep(): void {
    const nowMs = performance.now()
    for (const connection of this.open) connection.enforceDeadlines(nowMs)
  }

  private turnAway(socket: Socket, refusal: Refusal): void {
    const { responseCode, message, reason } = refusal
    const remoteAddress = plainAddress(socket.remoteAddress)
    this.edge.journal.refused({ id: '', remoteAddress }, reason, responseCode)
    socket.on('error', (error) => this.edge.journal.connectionBroke(error))
    socket.end(`${responseCode} ${message}\r\n`)
    // Read on, so that what the client sent meanwhile does not reset the connection before it saw the answer.
    socket.resume()
    const linger = setTimeout(() => socket.destroy(), REFUSED_LINGER_MS)
    socket.once('close', () => clearTimeout(linger))
  }
}
