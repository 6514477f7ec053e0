import type { Socket } from 'node:net'
import type { Registry } from 'prom-client'
import { SharedSlots } from '#libs/runtime/fairness/shared-slots.js'
import { Metrics } from '#libs/runtime/process/metrics.js'
import type { Principal } from '../access/principal.js'
import { unavailable, shuttingDown } from '../http/problems.js'
import type { StalledReaders } from '../http/stalled-readers.js'
import type { EventStream } from './event-stream.js'

export interface OpenStreamsOptions {
  /** The maximum number of open streams. */
  max: number
  /** Detects clients that read nothing. */
  stalled: Pick<StalledReaders, 'watch'>
  registry: Registry
}

export interface StreamSlot {
  /** After this call, the stream may be ended for another key, if its client stalls, or with the process. */
  watch(stream: EventStream, socket: Socket): void
  /** Releases the slot. Further calls do nothing. */
  release(): void
}

const STOPPED_WITHIN_MS = 1_000

/**
 * The open streams of this process. Their number is limited, and shared among accounts and keys. They end with the
 * process.
 */
export class OpenStreams {
  private readonly slots: SharedSlots
  private readonly open = new Set<EventStream>()
  private isStopping = false

  constructor(private readonly options: OpenStreamsOptions) {
    this.slots = new SharedSlots(options.max)
    new Metrics(options.registry).gauge(
      'mayfly_open_streams',
      'Open streams of events.',
      () => this.slots.taken,
    )
  }

  /** Throws too-many-streams, and shutting-down. */
  take({ accountId, countedBy }: Principal): StreamSlot {
    if (this.isStopping) throw shuttingDown()
    let watched: EventStream | null = null
    let unwatch: () => void = () => undefined
    const release = this.slots.take([accountId, countedBy], () => {
      watched?.finish('crowded-out')
      return watched !== null
    })
    if (release === null) {
      const detail = 'The limit of open streams is reached, and this key has its share of them.'
      throw unavailable('too-many-streams', detail)
    }
    return {
      watch: (stream, socket) => {
        watched = stream
        this.open.add(stream)
        unwatch = this.options.stalled.watch(socket, () => stream.cut('client-stalled'))
        if (this.isStopping) stream.finish('stopping')
      },
      release: () => {
        release()
        unwatch()
        if (watched !== null) this.open.delete(watched)
      },
    }
  }

  /**
   * Ends every stream, and after a second cuts those whose clients don't read. The clients reconnect to another
   * process.
   */
  stop(): void {
    this.isStopping = true
    for (const stream of this.open) stream.finish('stopping')
    setTimeout(() => {
      for (const stream of this.open) stream.cut('stopping')
    }, STOPPED_WITHIN_MS).unref()
  }
}
