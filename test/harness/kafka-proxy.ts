import { createServer, connect, type AddressInfo, type Server, type Socket } from 'node:net'
import { once } from 'node:events'

/**
 * Stands between a client and a broker, and can be out of reach or silent. The broker's answers name its own
 * address, to which clients would turn: the proxy puts its own in the place.
 */
export class KafkaProxy {
  private readonly sockets = new Set<Socket>()
  private isSilent = false
  private server: Server

  /** `broker` as `host:port`, as it is advertised; the host must be the proxy's, 127.0.0.1. */
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
    this.server = createServer((client) => this.pass(client))
  }

  get address(): string {
    return `${this.host}:${this.ownPort}`
  }

  /** Ends all connections and refuses others. */
  async cut(): Promise<void> {
    const closed = once(this.server, 'close')
    this.server.close()
    for (const socket of this.sockets) socket.destroy()
    await closed
  }

  /** Takes connections and passes nothing on, until `mend`. */
  silence(): Promise<void> {
    this.isSilent = true
    for (const socket of this.sockets) socket.pause()
    return Promise.resolve()
  }

  /** Ends a silence or a cut. */
  async mend(): Promise<void> {
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

  private pass(client: Socket): void {
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

/** As Kafka's protocol writes it: a string of two bytes of length, then four bytes. */
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
