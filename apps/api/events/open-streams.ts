import type { Socket } from 'node:net'
import { Gauge, type Registry } from 'prom-client'
import { SharedSlots } from '#libs/runtime/fair-share.js'
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

export interface StreamSlot {
  /** From then on the stream may be ended for another key, for a stalled client, or with the process. */
  watch(stream: EventStream, socket: Socket): void
  /** Gives the slot back. Calling it again does nothing. */
  leave(): void
}

const STOPPED_WITHIN_MS = 1_000

/** The streams of this process: at most so many, shared by account and key, and ended with the process. */
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

  /** Throws too-many-streams, and shutting-down. */
  take({ accountId, keyId }: Principal): StreamSlot {
    if (this.isStopping) throw unavailable('shutting-down', 'This instance accepts no more requests.')
    let watched: EventStream | null = null
    let unwatch: () => void = () => undefined
    const leave = this.slots.take([accountId, keyId], () => {
      watched?.finish('crowded-out')
      return watched !== null
    })
    if (leave === null) {
      const detail = 'There are as many streams as there may be, and the key has its share of them.'
      throw unavailable('too-many-streams', detail)
    }
    return {
      watch: (stream, socket) => {
        watched = stream
        this.open.add(stream)
        unwatch = this.options.stalled.watch(socket, () => stream.cut('client-stalled'))
        if (this.isStopping) stream.finish('stopping')
      },
      leave: () => {
        leave()
        unwatch()
        if (watched !== null) this.open.delete(watched)
      },
    }
  }

  /** Ends every stream; a second later also those that nobody reads. The clients connect to another process. */
  stop(): void {
    this.isStopping = true
    for (const stream of this.open) stream.finish('stopping')
    setTimeout(() => {
      for (const stream of this.open) stream.cut('stopping')
    }, STOPPED_WITHIN_MS).unref()
  }
}
