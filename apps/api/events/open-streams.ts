import type { Socket } from 'node:net'
import { Gauge, type Registry } from 'prom-client'
import { unavailable } from '../http/problems.js'
import type { EventStream } from './event-stream.js'

export interface OpenStreamsOptions {
  /** Streams at once. */
  most: number
  /** A client that takes nothing of what waits for it for so long is cut off. */
  stallMs: number
  registry: Registry
}

interface Watched {
  stream: EventStream
  socket: Socket
  /** Bytes that the client, or the system on its behalf, has taken. */
  taken: number
  takenAtMs: number
}

/** A place among the streams: given back, once is enough, when its stream is over. */
export interface StreamPlace {
  watch(stream: EventStream, socket: Socket): void
  leave(): void
}

const STOPPED_WITHIN_MS = 1_000

/** Every stream of this process: how many there may be, which of them nobody reads, and their end with it. */
export class OpenStreams {
  private readonly places = new Set<object>()
  private readonly watched = new Set<Watched>()
  private readonly sweeping: NodeJS.Timeout
  private isStopping = false

  constructor(private readonly options: OpenStreamsOptions) {
    const { places } = this
    new Gauge({
      name: 'mayfly_open_streams',
      help: 'Streams of events that are open.',
      registers: [options.registry],
      collect() {
        this.set(places.size)
      },
    })
    this.sweeping = setInterval(() => this.sweep(), Math.min(options.stallMs / 4, 5_000)).unref()
  }

  /** Throws too-many-streams where there are as many as there may be. */
  take(): StreamPlace {
    if (this.isStopping) throw unavailable('shutting-down', 'This instance takes no more requests.')
    if (this.places.size >= this.options.most) {
      throw unavailable('too-many-streams', `This instance has ${this.options.most} streams open already.`)
    }
    const place = {}
    let watched: Watched | null = null
    this.places.add(place)
    return {
      watch: (stream, socket) => {
        watched = { stream, socket, taken: 0, takenAtMs: performance.now() }
        this.watched.add(watched)
        if (this.isStopping) stream.finish('stopping')
      },
      leave: () => {
        this.places.delete(place)
        if (watched !== null) this.watched.delete(watched)
      },
    }
  }

  /** Ends every stream, those that nobody reads a moment later: their clients go on elsewhere. */
  stop(): void {
    this.isStopping = true
    clearInterval(this.sweeping)
    for (const { stream } of this.watched) stream.finish('stopping')
    setTimeout(() => {
      for (const { stream } of this.watched) stream.cut('stopping')
    }, STOPPED_WITHIN_MS).unref()
  }

  private sweep(): void {
    const nowMs = performance.now()
    for (const watched of this.watched) {
      const { stream, socket } = watched
      const taken = socket.bytesWritten - socket.writableLength
      if (socket.writableLength === 0 || taken > watched.taken) {
        watched.taken = taken
        watched.takenAtMs = nowMs
      } else if (nowMs - watched.takenAtMs >= this.options.stallMs) {
        stream.cut('client-stalled')
      }
    }
  }
}
