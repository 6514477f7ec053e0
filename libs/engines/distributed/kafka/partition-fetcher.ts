import type { PartitionSource } from '#libs/ports/event-log/partition-loop.js'
import { messageOf } from '#libs/runtime/errors.js'
import { Backoff } from '#libs/runtime/timing.js'
import { isOutOfRange, type Fetched, type FetchPosition, type KafkaCluster } from './kafka-cluster.js'

type Following = Awaited<ReturnType<PartitionSource['next']>>

interface Reader extends FetchPosition {
  resolve: (following: Following) => void
}

/** How long a broker waits for records before it answers. */
const WAIT_MS = 250
/** The same while readers handle records, because they may request more before the answer. */
const BUSY_WAIT_MS = 50
/** How long the next request waits for readers that are handling records, so that it includes their partitions. */
const GRACE_MS = 20
/** How long a partition that can't be read is excluded from requests. */
const EXCLUDED_MS = 5_000
const FETCH_BACKOFF = { firstMs: 100, maxMs: 2_000 }

/**
 * Fetches records for all waiting readers, with one request at a time to each broker. kafkajs's own consumer sends the next
 * request to a broker only after all records of the last response are handled, so that one slow partition would block the
 * others.
 */
export class PartitionFetcher {
  private readonly waiting = new Map<number, Reader>()
  /** Partitions whose readers are handling records. */
  private readonly handling = new Set<number>()
  /** Requests in progress, including the pauses after them, by node id. */
  private readonly requests = new Map<string, Promise<void>>()
  /** Partitions of a response that could not be decoded. Each is requested alone, to find the one that fails. */
  private readonly suspects = new Set<number>()
  /** Partitions that can't be read, with the timer after which they are requested again. */
  private readonly excluded = new Map<number, NodeJS.Timeout>()
  private readonly stopping = new AbortController()
  private readonly backoff = new Backoff(FETCH_BACKOFF)
  /** Ends the pause that waits for readers to finish. */
  private onAllHandled: () => void = () => undefined

  /** `lingerMs`: the pause after a response with records, so that the next one has more. */
  constructor(
    private readonly cluster: KafkaCluster,
    private readonly topic: string,
    private readonly lingerMs: number,
    private readonly onError: (error: unknown) => void,
  ) {}

  /** Implements PartitionSource.next. */
  async next(partition: number, offset: number, signal: AbortSignal): Promise<Following> {
    if (signal.aborted) return null
    const { promise, resolve } = Promise.withResolvers<Following>()
    const reader: Reader = { partition, offset, resolve }
    const drop = () => {
      if (this.waiting.get(partition) === reader) this.waiting.delete(partition)
      resolve(null)
    }
    signal.addEventListener('abort', drop, { once: true })
    this.waiting.set(partition, reader)
    this.release(partition)
    this.fetchAll()
    const following = await promise
    signal.removeEventListener('abort', drop)
    return following
  }

  /** Must be called when a reader has handled or abandoned its records. */
  release(partition: number): void {
    this.handling.delete(partition)
    if (this.handling.size === 0) this.onAllHandled()
  }

  async stop(): Promise<void> {
    this.stopping.abort()
    for (const timer of this.excluded.values()) clearTimeout(timer)
    await Promise.all(this.requests.values())
    await this.cluster.close()
  }

  private isStopped(): boolean {
    return this.stopping.signal.aborted
  }

  private fetchAll(): void {
    if (this.isStopped()) return
    const readers = [...this.waiting.values()].filter(({ partition }) => !this.excluded.has(partition))
    for (const [nodeId, ofBroker] of this.cluster.byLeader(this.topic, readers)) {
      if (this.requests.has(nodeId)) continue
      const suspect = ofBroker.find(({ partition }) => this.suspects.has(partition))
      const requested = suspect === undefined ? ofBroker : [suspect]
      const request = this.fetch(nodeId, requested)
        .catch((error: unknown) => this.recover(error, requested))
        .finally(() => {
          this.requests.delete(nodeId)
          this.fetchAll()
        })
        .catch(this.onError)
      this.requests.set(nodeId, request)
    }
  }

  private async fetch(nodeId: string, readers: readonly Reader[]): Promise<void> {
    const waitMs = this.handling.size > 0 || this.suspects.size > 0 ? BUSY_WAIT_MS : WAIT_MS
    const requestedAt = Date.now()
    const fetched = await this.cluster.fetch(nodeId, this.topic, readers, waitMs)
    this.backoff.reset()
    for (const { partition } of readers) this.suspects.delete(partition)
    if (this.deliver(fetched, readers)) {
      if (this.lingerMs > 0) await this.pause(this.lingerMs)
      else await this.pause(GRACE_MS, { untilAllHandled: true })
    } else {
      // A broker without records answers after `waitMs`, but at once if it has empty batches.
      const leftMs = requestedAt + waitMs - Date.now()
      if (leftMs > 0) await this.pause(leftMs)
    }
  }

  /** Passes records to their readers. Returns whether there were any. */
  private deliver(fetched: Fetched, readers: readonly Reader[]): boolean {
    if (this.isStopped()) return false
    let hasDelivered = false
    for (const { partition, from, records, next } of fetched.partitions) {
      const reader = readers.find((each) => each.partition === partition)
      if (reader === undefined || this.waiting.get(partition) !== reader || next === from) continue
      this.waiting.delete(partition)
      this.handling.add(partition)
      reader.resolve({ records, next })
      hasDelivered = true
    }
    return hasDelivered
  }

  /** Not `pauseUntilAborted`: the errors of ended pauses, with stack traces, took 5 % of a role's CPU time under load. */
  private async pause(ms: number, { untilAllHandled = false } = {}): Promise<void> {
    const { signal } = this.stopping
    if (signal.aborted) return
    const { promise, resolve } = Promise.withResolvers<undefined>()
    const end = () => resolve(undefined)
    const timer = setTimeout(end, ms)
    signal.addEventListener('abort', end, { once: true })
    if (untilAllHandled) this.onAllHandled = end
    await promise
    clearTimeout(timer)
    signal.removeEventListener('abort', end)
  }

  private async recover(error: unknown, requested: readonly FetchPosition[]): Promise<void> {
    if (this.isStopped()) return
    if (isOutOfRange(error)) {
      const { partition } = error as { partition?: unknown }
      const reader = this.waiting.get(Number(partition))
      this.waiting.delete(Number(partition))
      reader?.resolve('out-of-range')
      return
    }
    if (isUndecodable(error)) {
      const [first, ...others] = requested
      if (others.length > 0) for (const { partition } of requested) this.suspects.add(partition)
      else if (first !== undefined) this.exclude(first, error)
      return
    }
    this.onError(error)
    await this.backoff.wait(this.stopping.signal)
    if (!this.isStopped()) await this.cluster.recover(error).catch(this.onError)
  }

  /** Excludes a partition from requests for a while, so that the others can be read. */
  private exclude({ partition, offset }: FetchPosition, cause: unknown): void {
    this.suspects.delete(partition)
    this.onError(
      new Error(`${this.topic}/${partition} can't be read from ${offset} on: ${messageOf(cause)}`, {
        cause,
      }),
    )
    const timer = setTimeout(() => {
      this.excluded.delete(partition)
      this.suspects.add(partition)
      this.fetchAll()
    }, EXCLUDED_MS)
    this.excluded.set(partition, timer)
  }
}

/** The names of the errors that kafkajs and Node throw for malformed bytes. Errors of zlib have a code. */
const DECODING_ERRORS: ReadonlySet<unknown> = new Set([
  'KafkaJSNotImplemented',
  'KafkaJSPartialMessageError',
  'KafkaJSUnsupportedMagicByteInMessageSet',
  'KafkaJSInvalidVarIntError',
  'KafkaJSInvalidLongError',
  'RangeError',
  'TypeError',
])

/** Whether a batch is damaged, or compressed in a way that kafkajs does not support. */
function isUndecodable(error: unknown): boolean {
  const { name, code } = error as { name?: unknown; code?: unknown }
  return DECODING_ERRORS.has(name) || (typeof code === 'string' && code.startsWith('Z_'))
}
