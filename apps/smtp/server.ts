import { constants } from 'node:crypto'
import { createServer, type Server, type Socket } from 'node:net'
import { SMTPServer, type SMTPServerOptions } from 'smtp-server'
import type { Settings } from '#libs/runtime/config/settings.js'
import { Networks, plainAddress } from '#libs/runtime/remote-address.js'
import type { ServerCertificate } from './certificate.js'
import { ConnectionLimits } from './connection-limits.js'
import { readProxySource } from './proxy-header.js'
import { REFUSALS, Refusal } from './replies.js'
import { Session, type SessionContext } from './session.js'
import { UnknownRecipients } from './session-bounds.js'

export interface EdgeServerOptions extends Omit<SessionContext, 'secureContext'> {
  certificate: ServerCertificate | null
}

/** Sockets past the limit, which are open only to be refused. */
const REFUSED_AT_ONCE = 64
const REFUSED_LINGER_MS = 1_000
const SWEEP_MS = 1_000

/** Listens with smtp-server, which also keeps the TLS context, and has a session of its own for each connection. */
export class EdgeServer extends SMTPServer {
  /** The second port, with implicit TLS (RFC 8314, section 3.3). */
  readonly tlsServer: Server
  private readonly open = new Set<Session>()
  /** Sockets whose balancer has not sent the remote address yet. */
  private readonly unnamed = new Set<Socket>()
  private readonly limits: ConnectionLimits
  private readonly unknown: UnknownRecipients
  private readonly balancers: Networks
  private readonly context: SessionContext
  private readonly sweeping: NodeJS.Timeout
  private isDraining = false

  constructor(private readonly edge: EdgeServerOptions) {
    const { settings, certificate } = edge
    super(serverOptions(certificate))
    this.tlsServer = createServer({ noDelay: true }, (socket) => this.take(socket, true))
    this.limits = new ConnectionLimits(settings)
    this.unknown = new UnknownRecipients(settings)
    this.balancers = new Networks(settings.smtpProxyFrom ?? [])
    for (const server of [this.server, this.tlsServer]) {
      server.maxConnections = settings.smtpMaxConnections + REFUSED_AT_ONCE
    }
    this.context = { ...edge, secureContext: () => this.secureContext.get('*') }
    this.on('error', (error) => edge.journal.connectionBroke(error))
    this.sweeping = setInterval(() => this.sweep(), sweepEveryMs(settings)).unref()
  }

  override connect(socket: Socket): void {
    this.take(socket, false)
  }

  private take(socket: Socket, isImplicitTls: boolean): void {
    // A socket that has closed already emits no further event.
    if (socket.destroyed) return
    socket.on('error', (error) => this.edge.journal.connectionBroke(error))
    if (this.isDraining) {
      this.turnAway(socket, REFUSALS.shuttingDown)
      return
    }
    if (this.balancers.has(plainAddress(socket.remoteAddress)))
      void this.connectProxied(socket, isImplicitTls)
    else this.admit(socket, plainAddress(socket.remoteAddress), isImplicitTls)
  }

  /** Resolves once every connection is closed and every mail under way settled, at the latest after `withinMs`. */
  async drain(withinMs: number): Promise<void> {
    this.isDraining = true
    const closed = Promise.all(
      [this.server, this.tlsServer].map(
        (server) => new Promise<void>((resolve) => server.close(() => resolve())),
      ),
    )
    for (const socket of this.unnamed) socket.destroy()
    for (const session of this.open) session.drain()
    const { promise: expired, resolve: expire } = Promise.withResolvers<undefined>()
    const timer = setTimeout(() => {
      for (const session of this.open) session.destroy()
      expire(undefined)
    }, withinMs)
    await Promise.race([expired, closed.then(() => this.edge.acceptance.settled())])
    clearTimeout(timer)
    clearInterval(this.sweeping)
  }

  /** A connection counts for the remote address that its balancer names. */
  private async connectProxied(socket: Socket, isImplicitTls: boolean): Promise<void> {
    const leave = this.limits.hold(plainAddress(socket.remoteAddress), () => {
      socket.destroy()
      return true
    })
    if (leave === null) {
      this.turnAway(socket, REFUSALS.tooManyConnections)
      return
    }
    this.unnamed.add(socket)
    const source = await readProxySource(socket, this.edge.settings.smtpHandshakeTimeoutMs)
    this.unnamed.delete(socket)
    leave()
    if (source === 'malformed' || source === 'late') {
      const remoteAddress = plainAddress(socket.remoteAddress)
      const reason = source === 'late' ? 'timeout' : 'malformed-proxy-header'
      this.edge.journal.refused({ id: '', remoteAddress }, reason, null)
      socket.destroy()
    } else if (this.isDraining) {
      this.turnAway(socket, REFUSALS.shuttingDown)
    } else if (!socket.destroyed) {
      this.admit(socket, source?.address ?? plainAddress(socket.remoteAddress), isImplicitTls)
    }
  }

  private admit(socket: Socket, remoteAddress: string, isImplicitTls: boolean): void {
    const admitted = this.limits.admit(remoteAddress, () => session.giveUp())
    if (admitted instanceof Refusal) {
      this.turnAway(socket, admitted, remoteAddress)
      return
    }
    const { host } = admitted
    const leave = () => {
      this.open.delete(session)
      admitted.leave()
      this.edge.journal.connectionsAre(this.limits.count)
    }
    const peer = { host, leave, remoteAddress, isImplicitTls, guesses: this.unknown.session(host.group) }
    const session = new Session(socket, peer, this.context)
    this.open.add(session)
    this.edge.journal.connectionsAre(this.limits.count)
  }

  private sweep(): void {
    const nowMs = performance.now()
    const { isCrowded } = this.limits
    for (const session of this.open) session.enforceDeadlines(nowMs, isCrowded)
  }

  private turnAway(
    socket: Socket,
    refusal: Refusal,
    remoteAddress = plainAddress(socket.remoteAddress),
  ): void {
    const { code, line, reason } = refusal
    this.edge.journal.refused({ id: '', remoteAddress }, reason, code)
    socket.end(line)
    // Read on, so that what the client sent meanwhile does not reset the connection before it has read the answer.
    socket.resume()
    const linger = setTimeout(() => socket.destroy(), REFUSED_LINGER_MS)
    socket.once('close', () => clearTimeout(linger))
  }
}

/** What smtp-server is used for: listening, and the context of TLS. */
function serverOptions(certificate: ServerCertificate | null): SMTPServerOptions {
  return {
    ...(certificate !== null && { cert: certificate.cert, key: certificate.key }),
    minVersion: 'TLSv1.2',
    // A client could ask for one handshake after the other (TLS 1.2).
    secureOptions: constants.SSL_OP_NO_RENEGOTIATION,
    // A reply must not wait until the client has acknowledged the one before it.
    noDelay: true,
    logger: false,
  }
}

/** Often enough for the shortest of the times that a session may take. */
function sweepEveryMs(settings: Settings): number {
  const shortestMs = Math.min(
    settings.smtpCommandTimeoutMs,
    settings.smtpCrowdedTimeoutMs,
    settings.smtpHandshakeTimeoutMs,
    settings.smtpSessionTimeoutMs,
  )
  return Math.min(SWEEP_MS, shortestMs / 4)
}
