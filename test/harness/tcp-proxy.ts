import { createServer, connect, type AddressInfo, type Server, type Socket } from 'node:net'
import { once } from 'node:events'

/** A proxy between a client and a server on this machine that can become unreachable or unresponsive. */
export class TcpProxy {
  private readonly sockets = new Set<Socket>()
  private isSilent = false
  private readonly server: Server
  private ownPort = 0

  /** `to` is the `host:port` of the server. The proxy has the same host. */
  static async start(to: string, answer?: TcpProxy['answer']): Promise<TcpProxy> {
    const [host = '', port = ''] = to.split(':')
    const proxy = new TcpProxy(host, Number(port), answer)
    await proxy.listen(0)
    return proxy
  }

  private constructor(
    private readonly host: string,
    private readonly port: number,
    /** What the client gets of the bytes of the server, given the ports of the server and of the proxy. */
    private readonly answer = (bytes: Buffer, _host: string, _port: number, _ownPort: number) => bytes,
  ) {
    this.server = createServer((client) => this.forward(client))
  }

  get address(): string {
    return `${this.host}:${this.ownPort}`
  }

  /** Closes all connections and refuses new ones. */
  async cut(): Promise<void> {
    const closed = once(this.server, 'close')
    this.server.close()
    for (const socket of this.sockets) socket.destroy()
    await closed
  }

  /** Accepts connections but forwards nothing, until `restore`. */
  silence(): Promise<void> {
    this.isSilent = true
    for (const socket of this.sockets) socket.pause()
    return Promise.resolve()
  }

  /** Ends `silence` or `cut`. */
  async restore(): Promise<void> {
    this.isSilent = false
    for (const socket of this.sockets) socket.resume()
    if (!this.server.listening) await this.listen(this.ownPort)
  }

  private async listen(port: number): Promise<void> {
    this.server.listen(port, this.host)
    await once(this.server, 'listening')
    this.ownPort = (this.server.address() as AddressInfo).port
  }

  private forward(client: Socket): void {
    const server = connect(this.port, this.host)
    client.on('data', (bytes) => server.write(bytes))
    server.on('data', (bytes: Buffer) => client.write(this.answer(bytes, this.host, this.port, this.ownPort)))
    for (const [socket, other] of [[client, server] as const, [server, client] as const]) {
      this.sockets.add(socket)
      if (this.isSilent) socket.pause()
      socket.on('error', () => other.destroy())
      socket.on('close', () => {
        this.sockets.delete(socket)
        other.destroy()
      })
    }
  }
}
