import type { Socket } from 'node:net'

interface Watched {
  socket: Socket
  cut: () => void
  leastBytes: number
  /** Bytes that the client, or the system on its behalf, has taken. */
  taken: number
  takenAtMs: number
}

const SWEEP_MS = 5_000

/** Cuts off clients that take nothing, or too little, of what waits for them. */
export class StalledReaders {
  private readonly watched = new Set<Watched>()
  private readonly sweeping: NodeJS.Timeout

  /** `stallMs`: the time in which a client must take something. */
  constructor(private readonly stallMs: number) {
    this.sweeping = setInterval(() => this.sweep(), Math.min(stallMs / 4, SWEEP_MS)).unref()
  }

  /**
   * Calls `cut` when the client of the socket has taken fewer bytes than the least in that time, although they waited
   * for it. Returns a function that ends the watch.
   */
  watch(socket: Socket, cut: () => void, leastBytes = 1): () => void {
    const watched = { socket, cut, leastBytes, taken: 0, takenAtMs: performance.now() }
    this.watched.add(watched)
    return () => void this.watched.delete(watched)
  }

  stop(): void {
    clearInterval(this.sweeping)
  }

  private sweep(): void {
    const nowMs = performance.now()
    for (const watched of this.watched) {
      const { socket, cut, leastBytes } = watched
      const taken = socket.bytesWritten - socket.writableLength
      if (socket.writableLength === 0 || taken >= watched.taken + leastBytes) {
        watched.taken = taken
        watched.takenAtMs = nowMs
      } else if (nowMs - watched.takenAtMs >= this.stallMs) {
        cut()
      }
    }
  }
}
