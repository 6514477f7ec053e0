import type { Socket } from 'node:net'

interface Watched {
  socket: Socket
  cut: () => void
  /** Bytes that the client, or the system on its behalf, has taken. */
  taken: number
  takenAtMs: number
}

const SWEEP_MS = 5_000

/** Cuts off clients that take nothing of what waits for them. */
export class StalledReaders {
  private readonly watched = new Set<Watched>()
  private readonly sweeping: NodeJS.Timeout

  /** `stallMs`: for how long a client may take nothing. */
  constructor(private readonly stallMs: number) {
    this.sweeping = setInterval(() => this.sweep(), Math.min(stallMs / 4, SWEEP_MS)).unref()
  }

  /** Calls `cut` when the client of the socket has stalled. Gives back how to end that. */
  watch(socket: Socket, cut: () => void): () => void {
    const watched = { socket, cut, taken: 0, takenAtMs: performance.now() }
    this.watched.add(watched)
    return () => void this.watched.delete(watched)
  }

  stop(): void {
    clearInterval(this.sweeping)
  }

  private sweep(): void {
    const nowMs = performance.now()
    for (const watched of this.watched) {
      const { socket, cut } = watched
      const taken = socket.bytesWritten - socket.writableLength
      if (socket.writableLength === 0 || taken > watched.taken) {
        watched.taken = taken
        watched.takenAtMs = nowMs
      } else if (nowMs - watched.takenAtMs >= this.stallMs) {
        cut()
      }
    }
  }
}
