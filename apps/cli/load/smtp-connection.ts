import { connect, isIP, type OnReadOpts, type Socket } from 'node:net'
import { connect as connectTls } from 'node:tls'

export type TlsMode = 'none' | 'starttls' | 'implicit'

export interface SmtpTarget {
  host: string
  port: number
  tls: TlsMode
  /** Accepts any certificate. */
  isInsecure: boolean
}

interface ConnectionEvents {
  /** A line was received, without its line feed. */
  line(line: string): void
  /** The connection is encrypted, after `encrypt`. */
  encrypted(): void
  /** It has ended; with a reason if it failed. */
  closed(failure: string | null): void
}

const MAX_LINE_LENGTH = 4_096
/** Replies of all connections: each is taken out at once. */
const RECEIVED = Buffer.alloc(16_384)
const LINE_FEED = '\n'

/** Lines over a connection to an SMTP server, with TLS from the start or after STARTTLS. */
export class SmtpConnection {
  /** When something was last sent or received, by `performance.now()`. */
  activeMs = performance.now()
  isEncrypted: boolean
  private socket: Socket
  /** The beginning of a line. */
  private received = ''
  private failure: string | null = null

  constructor(
    private readonly target: SmtpTarget,
    private readonly events: ConnectionEvents,
  ) {
    const { host, port, tls } = target
    this.isEncrypted = tls === 'implicit'
    const address = { host, port, noDelay: true }
    this.socket = this.isEncrypted
      ? connectTls({ ...address, ...this.tlsOptions() })
      : connect({ ...address, onread: this.onread() })
    this.listen()
    this.socket.once('close', () => this.events.closed(this.failure))
  }

  write(text: string): void {
    this.activeMs = performance.now()
    this.socket.write(text, 'latin1')
  }

  /** After the reply to STARTTLS. */
  encrypt(): void {
    const plain = this.socket
    this.socket = connectTls({ socket: plain, ...this.tlsOptions() })
    this.isEncrypted = true
    this.listen()
    this.socket.once('secureConnect', () => this.events.encrypted())
    this.socket.once('close', () => plain.destroy())
  }

  fail(reason: string): void {
    this.failure ??= reason
    this.destroy()
  }

  /** Sends a last text. */
  end(text: string): void {
    this.socket.end(text)
  }

  destroy(): void {
    this.socket.destroy()
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

  private receive(chunk: string): void {
    this.activeMs = performance.now()
    const { socket } = this
    const text = this.received + chunk
    let start = 0
    for (let end = text.indexOf(LINE_FEED); end >= 0; end = text.indexOf(LINE_FEED, start)) {
      this.events.line(text.slice(start, end))
      start = end + 1
      if (socket.destroyed || this.socket !== socket) break
    }
    this.received = text.slice(start)
    // Replies behind that to STARTTLS may be forged (RFC 3207, section 6).
    if (this.socket !== socket && this.received !== '') this.fail('text before TLS')
    if (this.received.length > MAX_LINE_LENGTH) this.fail('not SMTP')
  }
}
