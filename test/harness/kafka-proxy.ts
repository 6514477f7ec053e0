import { createServer, connect, type AddressInfo, type Server, type Socket } from 'node:net'
import { once } from 'node:events'

/**
 * A proxy between a client and a broker that can become unreachable or unresponsive. The broker's answers contain its
 * address, to which clients would connect directly, so the proxy replaces it with its own.
 */
export class KafkaProxy {
  private readonly sockets = new Set<Socket>()
  private isSilent = false
  private server: Server

  /** `broker` is the advertised `host:port`. The host must be the proxy's, 127.0.0.1. */
  static async start(broker: string): Promise<KafkaProxy> {
    const [host = '', port = ''] = broker.split(':')
    const proxy = new KafkaProxy(host, Number(port))
    await proxy.listen(0)
    return proxy
  }

  private constructor(
    private readonly host: string,
    private readonly port: number,
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

  private ownPort = 0

  private async listen(port: number): Promise<void> {
    this.server.listen(port, this.host)
    await once(this.server, 'listening')
    this.ownPort = (this.server.address() as AddressInfo).port
  }

  private forward(client: Socket): void {
    const broker = connect(this.port, this.host)
    const [theirs, ours] = [this.port, this.ownPort].map((port) => addressBytes(this.host, port))
    client.on('data', (bytes) => broker.write(bytes))
    broker.on('data', (bytes: Buffer) => client.write(replaced(bytes, theirs, ours)))
    for (const [socket, other] of [[client, broker] as const, [broker, client] as const]) {
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

/** The encoding of Kafka's protocol: a string with a length of two bytes, then a port of four bytes. */
function addressBytes(host: string, port: number): Buffer {
  const bytes = Buffer.alloc(2 + host.length + 4)
  bytes.writeUInt16BE(host.length)
  bytes.write(host, 2)
  bytes.writeUInt32BE(port, 2 + host.length)
  return bytes
}

function replaced(bytes: Buffer, old: Buffer = Buffer.alloc(0), by: Buffer = Buffer.alloc(0)): Buffer {
  for (let at = bytes.indexOf(old); at >= 0; at = bytes.indexOf(old, at + 1)) by.copy(bytes, at)
  return bytes
}
