import type { Socket } from 'node:net'
import { TLSSocket } from 'node:tls'
import type { SMTPServer } from 'smtp-server'

export interface HandshakeEvents {
  onSecure: (socket: TLSSocket) => void
  /** Told once, whatever ended it; the socket is destroyed by then. */
  onFailure: (error: Error) => void
  onClose: () => void
}

/** A TLS handshake on a socket that has spoken SMTP in the clear so far (RFC 3207). */
export class Handshake {
  private readonly startedAtMs = performance.now()
  private readonly secure: TLSSocket

  constructor(server: SMTPServer, socket: Socket, { onSecure, onFailure, onClose }: HandshakeEvents) {
    socket.removeAllListeners()
    // Whatever breaks the socket below is told by the one on top.
    socket.on('error', () => undefined)
    this.secure = new TLSSocket(socket, {
      isServer: true,
      secureContext: server.secureContext.get('*'),
      server: server.server,
    })
    let isOver = false
    const fail = (error: Error) => {
      // From above: to pull the socket away beneath a handshake ends the process.
      this.secure.destroy()
      if (isOver) return
      isOver = true
      onFailure(error)
    }
    this.secure.on('error', fail)
    // Not declared, and yet how Node tells of a handshake that failed on the server's side.
    this.secure.on('_tlsError', fail)
    this.secure.once('close', () => {
      fail(new Error('the connection ended in the TLS handshake'))
      socket.destroy()
      onClose()
    })
    this.secure.once('secure', () => {
      if (isOver) return
      isOver = true
      this.secure.off('error', fail).off('_tlsError', fail)
      onSecure(this.secure)
    })
  }

  hasTakenLongerThan(ms: number, nowMs: number): boolean {
    return nowMs - this.startedAtMs > ms
  }

  abort(): void {
    this.secure.destroy()
  }
}
