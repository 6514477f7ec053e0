import { constants } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type Socket } from 'node:net'
import { SMTPServer } from 'smtp-server'
import type { Settings } from '#libs/runtime/config/settings.js'
import { Networks, plainAddress } from '#libs/runtime/remote-address.js'
import { beforeDeadline } from '#libs/runtime/timing.js'
import type { ServerCertificate } from './certificate.js'
import { ConnectionLimits } from './connection-limits.js'
import { readProxySource } from './proxy-header.js'
import { REFUSALS, Refusal } from './replies.js'
import { Session } from './session.js'
import type { SessionContext } from './transaction.js'

/** Sockets beyond the limit, which stay open only until they have read the refusal. */
const MAX_REFUSED_SOCKETS = 48
/** Further sockets are closed by Node, without a reply. */
const SPARE_SOCKETS = 16
const REFUSED_LINGER_MS = 1_000
const SWEEP_MS = 1_000

/**
 * Listens on the SMTP ports and creates a Session for each connection. Of smtp-server it uses only the listening and
 * the TLS context.
 */
export class EdgeServer extends SMTPServer {
  /** The second port, with implicit TLS (RFC 8314, section 3.3). */
  readonly tlsServer = createServer({ noDelay: true }, (socket) => this.onConnection(socket, true))
  private readonly sessions = new Set<Session>()
  /** Sockets of load balancers that have not sent the PROXY header yet. */
  private readonly awaitingHeader = new Set<Socket>()
  /** The oldest first. */
  private readonly refused = new Set<Socket>()
  private readonly limits: ConnectionLimits
  private readonly balancers: Networks
  private readonly context: SessionContext
  private readonly sweeping: NodeJS.Timeout
  private isDraining = false

  constructor(certificate: ServerCertificate | null, context: Omit<SessionContext, 'secureContext'>) {
    super({
      ...(certificate !== null && { cert: certificate.cert, key: certificate.key }),
      minVersion: 'TLSv1.2',
      // A TLS 1.2 client could renegotiate again and again.
      secureOptions: constants.SSL_OP_NO_RENEGOTIATION,
      // Without this, Nagle's algorithm delays a reply until the client has acknowledged the previous one.
      noDelay: true,
      logger: false,
    })
    this.context = { ...context, secureContext: this.secureContext.get('*') }
    const { settings, journal } = context
    this.limits = new ConnectionLimits(settings)
    this.balancers = new Networks(settings.smtpProxyFrom ?? [])
    for (const server of [this.server, this.tlsServer]) {
      server.maxConnections = settings.smtpMaxConnections + MAX_REFUSED_SOCKETS + SPARE_SOCKETS
    }
    this.on('error', (error) => journal.connectionBroke(error))
    this.sweeping = setInterval(() => this.sweep(), sweepEveryMs(settings)).unref()
  }

  override connect(socket: Socket): void {
    this.onConnection(socket, false)
  }

  private onConnection(socket: Socket, isImplicitTls: boolean): void {
    // A socket that has already closed emits no more events.
    if (socket.destroyed) return
    socket.on('error', (error) => this.context.journal.connectionBroke(error))
    const address = plainAddress(socket.remoteAddress)
    if (this.balancers.has(address)) void this.connectProxied(socket, address, isImplicitTls)
    else this.admit(socket, address, isImplicitTls)
  }

  /** Resolves once every connection is closed and every mail has its outcome, or after `withinMs`. */
  async drain(withinMs: number): Promise<void> {
    this.isDraining = true
    const closing = [this.server, this.tlsServer].map((server) => once(server.close(), 'close'))
    for (const socket of this.awaitingHeader) socket.destroy()
    for (const session of this.sessions) session.drain()
    const settled = Promise.all(closing).then(() => this.context.acceptance.settled())
    await beforeDeadline(withinMs, settled).catch(() => {
      for (const session of this.sessions) session.destroy()
    })
    clearInterval(this.sweeping)
  }

  /** Admits a connection under the remote address in its PROXY header. */
  private async connectProxied(socket: Socket, balancer: string, isImplicitTls: boolean): Promise<void> {
    const releaseSlot = this.limits.hold(balancer, () => {
      socket.destroy()
      return true
    })
    if (releaseSlot === null) {
      this.refuse(socket, REFUSALS.tooManyConnections, balancer)
      return
    }
    this.awaitingHeader.add(socket)
    const source = await readProxySource(socket, this.context.settings.smtpHandshakeTimeoutMs)
    this.awaitingHeader.delete(socket)
    releaseSlot()
    if (source === 'malformed' || source === 'late') {
      const reason = source === 'late' ? 'timeout' : 'malformed-proxy-header'
      this.context.journal.refused({ id: '', remoteAddress: balancer }, reason, null)
      socket.destroy()
    } else if (!socket.destroyed) {
      this.admit(socket, source?.address ?? balancer, isImplicitTls)
    }
  }

  private admit(socket: Socket, remoteAddress: string, isImplicitTls: boolean): void {
    if (this.isDraining) {
      this.refuse(socket, REFUSALS.shuttingDown, remoteAddress)
      return
    }
    const admitted = this.limits.admit(remoteAddress, () => session.giveUp())
    if (admitted instanceof Refusal) {
      this.refuse(socket, admitted, remoteAddress)
      return
    }
    const { host } = admitted
    const release = () => {
      this.sessions.delete(session)
      admitted.release()
      this.context.journal.setConnections(this.limits.count)
    }
    const session = new Session(socket, { host, release, remoteAddress, isImplicitTls }, this.context)
    this.sessions.add(session)
    this.context.journal.setConnections(this.limits.count)
  }

  private sweep(): void {
    const nowMs = performance.now()
    const { isCrowded } = this.limits
    for (const session of this.sessions) session.enforceDeadlines(nowMs, isCrowded)
  }

  private refuse(socket: Socket, refusal: Refusal, remoteAddress: string): void {
    const { code, line, reason } = refusal
    this.context.journal.refused({ id: '', remoteAddress }, reason, code)
    socket.end(line)
    // Keep reading: closing a socket with unread data resets the connection before the client has read the reply.
    socket.resume()
    const linger = setTimeout(() => socket.destroy(), REFUSED_LINGER_MS)
    socket.once('close', () => {
      clearTimeout(linger)
      this.refused.delete(socket)
    })
    this.refused.add(socket)
    // The next connection may be one that is admitted.
    const [oldest] = this.refused
    if (this.refused.size > MAX_REFUSED_SOCKETS) oldest?.destroy()
  }
}

/** A quarter of the shortest timeout, at most a second. */
function sweepEveryMs(settings: Settings): number {
  const shortestMs = Math.min(
    settings.smtpCommandTimeoutMs,
    settings.smtpCrowdedTimeoutMs,
    settings.smtpHandshakeTimeoutMs,
    settings.smtpSessionTimeoutMs,
  )
  return Math.min(SWEEP_MS, shortestMs / 4)
}
