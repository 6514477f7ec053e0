import type { Socket } from 'node:net'
import { Client, type buildConnector, type Dispatcher } from 'undici'
import { AttemptError } from './attempt-error.js'

/** One response with its interim responses, chunk extensions and trailers, which undici neither limits nor reports. */
const MAX_RESPONSE_BYTES = 1024 * 1024

/** Requests that were sent on a connection that had been idle, which the endpoint may have closed meanwhile. */
export const onIdleConnections = new WeakSet<Dispatcher.DispatchOptions>()

/** A connection for consecutive exchanges that limits the bytes of each response. */
export class GuardedClient extends Client {
  private socket: Socket | null = null
  /** Bytes of earlier exchanges. */
  private bytesBefore = 0

  constructor(origin: URL, options: Client.Options, connect: buildConnector.connector) {
    super(origin, {
      ...options,
      connect: (wanted, callback) =>
        connect(wanted, (...result) => {
          if (result[1] !== null) this.watch(result[1])
          callback(...result)
        }),
    })
  }

  override dispatch(options: Dispatcher.DispatchOptions, handler: Dispatcher.DispatchHandler): boolean {
    if (this.stats.connected) onIdleConnections.add(options)
    this.bytesBefore = this.socket?.bytesRead ?? 0
    return super.dispatch(options, handler)
  }

  private watch(socket: Socket): void {
    this.socket = socket
    this.bytesBefore = 0
    socket.on('readable', () => {
      if (socket.bytesRead - this.bytesBefore <= MAX_RESPONSE_BYTES) return
      socket.destroy(new AttemptError('protocol', 'the response is too large outside its content'))
    })
  }
}
