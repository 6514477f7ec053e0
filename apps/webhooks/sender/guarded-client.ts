import type { Socket } from 'node:net'
import { Client, type buildConnector, type Dispatcher } from 'undici'
import { Exchange } from './exchange.js'
import { AttemptFault } from './outcome.js'

/**
 * Of one answer, interim ones, chunk extensions and trailers included: undici bounds none of these, and does not tell
 * of them.
 */
const MAX_READ_BYTES = 1024 * 1024

/** A connection for one exchange after the other, which reads only so much of each. */
export class GuardedClient extends Client {
  private readonly reading: BoundedReading

  constructor(origin: URL, options: Client.Options, connect: buildConnector.connector) {
    const reading = new BoundedReading()
    super(origin, { ...options, connect: reading.over(connect) })
    this.reading = reading
  }

  /** Tells the exchange whether the connection stood already. */
  override dispatch(options: Dispatcher.DispatchOptions, handler: Dispatcher.DispatchHandler): boolean {
    if (handler instanceof Exchange) handler.isOnKeptConnection = this.stats.connected
    this.reading.beginAnew()
    return super.dispatch(options, handler)
  }
}

class BoundedReading {
  private socket: Socket | null = null
  private bytesBefore = 0

  beginAnew(): void {
    this.bytesBefore = this.socket?.bytesRead ?? 0
  }

  over(connect: buildConnector.connector): buildConnector.connector {
    return (wanted, callback) => {
      connect(wanted, (...result) => {
        if (result[1] !== null) this.watch(result[1])
        callback(...result)
      })
    }
  }

  private watch(socket: Socket): void {
    this.socket = socket
    this.bytesBefore = 0
    socket.on('readable', () => {
      if (socket.bytesRead - this.bytesBefore <= MAX_READ_BYTES) return
      socket.destroy(new AttemptFault('protocol', 'the answer has more around its content than is read'))
    })
  }
}
