import type { Socket } from 'node:net'
import { Gauge, type Registry } from 'prom-client'
import { SharedSlots } from '#libs/runtime/fair-share/shared-slots.js'
import type { Principal } from '../access/authenticator.js'
import { unavailable } from '../http/problems.js'
import type { StalledReaders } from '../http/stalled-readers.js'
import type { EventStream } from './event-stream.js'

export interface OpenStreamsOptions {
  /** Streams at once. */
  most: number
  /** Disconnects clients that read nothing. */
  stalled: Pick<StalledReaders, 'watch'>
  registry: Registry
}

/** A slot among the streams: given back, once is enough, when its stream is over. */
export interface StreamPlace {
  watch(stream: EventStream, socket: Socket): void
  leave(): void
}

const STOPPED_WITHIN_MS = 1_000

/** Every stream of this process: how many there may be, shared by account and key, and their end with the process. */
export class OpenStreams {
  private readonly slots: SharedSlots
  private readonly open = new Set<EventStream>()
  private isStopping = false

  constructor(private readonly options: OpenStreamsOptions) {
    const slots = new SharedSlots(options.most)
    this.slots = slots
    new Gauge({
      name: 'mayfly_open_streams',
      help: 'Streams of events that are open.',
      registers: [options.registry],
      collect() {
        this.set(slots.taken)
      },
    })
  }

  /** Throws too-many-streams if there are as many as there may be. */
  take({ accountId, keyId }: Principal): StreamPlace {
    if (this.isStopping) throw unavailable('shutting-down', 'This instance accepts no more requests.')
    let watched: EventStream | null = null
    const leavePlace = this.slots.take([accountId, keyId], () => {
      watched?.finish('crowded-out')
      return watched !== null
    })
    if (leavePlace === null) {
      const detail = 'There are as many streams as there may be, and the key has its share of them.'
      throw unavailable('too-many-streams', detail)
    }
    let leaveWatched: () => void = () => undefined
    return {
      watch: (stream, socket) => {
        const unwatch = this.options.stalled.watch(socket, () => stream.cut('client-stalled'))
        this.open.add(stream)
        watched = stream
        leaveWatched = () => {
          unwatch()
          this.open.delete(stream)
        }
        if (this.isStopping) stream.finish('stopping')
      },
      leave: () => {
        leavePlace()
        leaveWatched()
      },
    }
  }

  /** Ends every stream, those that nobody reads a moment later: their clients go on elsewhere. */
  stop(): void {
    this.isStopping = true
    for (const stream of this.open) stream.finish('stopping')
    setTimeout(() => {
      for (const stream of this.open) stream.cut('stopping')
    }, STOPPED_WITHIN_MS).unref()
  }
}
