import type { TLSSocket } from 'node:tls'
import { SMTPConnection } from 'smtp-server/lib/smtp-connection.js'
import { Handshake } from './handshake.js'

/** A session of smtp-server that greets at once, and whose TLS handshake cannot harm other sessions. */
export abstract class UpgradableConnection extends SMTPConnection {
  /** The one under way. */
  protected handshake: Handshake | null = null

  /** The session has begun anew over TLS. */
  protected abstract secured(): void

  /** The connection is gone with its handshake. */
  protected abstract handshakeFailed(error: Error): void

  /**
   * Without the 100 ms by which smtp-server holds its greeting back. `connectionReady` itself takes a turn of the
   * event loop, enough to see what a client has sent already instead of waiting (RFC 5321, section 4.3.1): such
   * a client is refused.
   */
  override init(): void {
    this._setListeners(() => this.connectionReady())
  }

  destroy(): void {
    if (this.handshake === null) this._socket.destroy()
    else this.handshake.abort()
  }

  /** In a handshake nothing can be said, and nothing waits to be sent. */
  override close(): void {
    if (this.handshake === null) super.close()
    else this.handshake.abort()
  }

  /**
   * As smtp-server does it, except for its end: what came in the clear after STARTTLS is discarded, and so is what
   * the client said before (RFC 3207, section 4.2); a handshake that fails or takes too long ends this session only.
   * With implicit TLS the handshake comes first, and `greet` follows it.
   */
  override upgrade(callback: () => void, greet?: () => void): void {
    if (this._parser !== false) {
      this._socket.unpipe(this._parser)
      this._parser.isClosed = true
    }
    this._upgrading = true
    setImmediate(callback)
    this.handshake = new Handshake(this._server, this._socket, {
      onSecure: (socket) => {
        this.goOn(socket)
        greet?.()
      },
      onFailure: (error) => {
        this._closing = true
        this.handshakeFailed(error)
      },
      onClose: () => this._onCloseEvent(),
    })
  }

  private goOn(socket: TLSSocket): void {
    this.handshake = null
    this._socket = socket
    this._upgrading = false
    this.session.secure = this.secure = true
    this.session.tlsOptions = this.tlsOptions = socket.getCipher()
    this.session.user = false
    this.hostNameAppearsAs = false
    this.openingCommand = false
    this._resetSession()
    this.secured()
    socket.on('error', (error: Error) => this._onError(error))
    this._armTimeout()
    this._parser = this._createParser()
    socket.pipe(this._parser)
  }
}
