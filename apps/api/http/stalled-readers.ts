import type { ServerResponse } from 'node:http'
import type { Socket } from 'node:net'

interface Watched {
  socket: Socket
  onStalled: () => void
  minBytes: number
  /** Bytes that the client, or the system on its behalf, has read. */
  readBytes: number
  readAtMs: number
}

const SWEEP_MS = 5_000
/** A client that reads less of a large answer in MAYFLY_STREAM_STALL_MS is disconnected. */
const MIN_ANSWER_BYTES = 1024 * 1024

/** Detects clients that read nothing, or too little, of the bytes that wait for them. */
export class StalledReaders {
  private readonly watched = new Set<Watched>()
  private readonly sweeping: NodeJS.Timeout

  /** `stallMs` is the time in which a client must read something. */
  constructor(private readonly stallMs: number) {
    this.sweeping = setInterval(() => this.sweep(), Math.min(stallMs / 4, SWEEP_MS)).unref()
  }

  /**
   * Calls `onStalled` when the client of the socket has read fewer than `minBytes` in that time, although more were
   * available. Returns a function that ends the watch.
   */
  watch(socket: Socket, onStalled: () => void, minBytes = 1): () => void {
    const watched = { socket, onStalled, minBytes, readBytes: 0, readAtMs: performance.now() }
    this.watched.add(watched)
    return () => void this.watched.delete(watched)
  }

  /** Disconnects the client of a large answer if it reads nothing or very little of it. */
  watchAnswer(response: ServerResponse): void {
    const { socket } = response.req
    const unwatch = this.watch(socket, () => socket.destroy(), MIN_ANSWER_BYTES)
    response.once('close', unwatch)
    if (response.closed) unwatch()
  }

  stop(): void {
    clearInterval(this.sweeping)
  }

  private sweep(): void {
    const nowMs = performance.now()
    for (const watched of this.watched) {
      const { socket, onStalled, minBytes } = watched
      const readBytes = socket.bytesWritten - socket.writableLength
      if (socket.writableLength === 0 || readBytes >= watched.readBytes + minBytes) {
        watched.readBytes = readBytes
        watched.readAtMs = nowMs
      } else if (nowMs - watched.readAtMs >= this.stallMs) {
        onStalled()
      }
    }
  }
}
