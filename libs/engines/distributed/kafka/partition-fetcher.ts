import type { PartitionSource } from '#libs/ports/event-log/partition-loop.js'
import { messageOf } from '#libs/runtime/errors.js'
import { GrowingPause, pauseUntilAborted } from '#libs/runtime/timing/waiting.js'
import { isOutOfRange, type Fetched, type KafkaCluster, type Wanted } from './kafka-cluster.js'

type Following = Awaited<ReturnType<PartitionSource['next']>>

/** A reader of one partition that waits for records. */
interface Reader extends Wanted {
  resolve: (following: Following) => void
}

/** How long a broker holds an answer back for records to come. */
const WAIT_MS = 250
/** The same while a reader handles records: it may want more before the answer comes. */
const BUSY_WAIT_MS = 50
/** How long the next request waits for the readers that were given records, so that it asks for their partitions too. */
const GRACE_MS = 20
/** How long a partition that can't be read is left out of requests. */
const LEFT_OUT_MS = 5_000
const FETCH_AGAIN = { firstMs: 100, mostMs: 2_000 }

/**
 * Fetches for all readers that want records, one request per broker at a time. kafkajs's own fetching waits for the
 * handling of all that a broker gave before it asks that broker again: one slow partition would block the others.
 */
export class PartitionFetcher {
  private readonly wanting = new Map<number, Reader>()
  /** Partitions whose readers were given records and have not come back for more. */
  private readonly handling = new Set<number>()
  /** Requests under way, and the pauses after them, by broker. */
  private readonly asked = new Map<string, Promise<void>>()
  /** Partitions of an answer that could not be read: each is asked for alone until it is known which one it was. */
  private readonly suspects = new Set<number>()
  /** Partitions that can't be read, with the timer after which they are tried again. */
  private readonly leftOut = new Map<number, NodeJS.Timeout>()
  private readonly stopping = new AbortController()
  private readonly again = new GrowingPause(FETCH_AGAIN)
  /** Resolves the pause that waits for readers to come back. */
  private allBack: () => void = () => undefined

  constructor(
    private readonly cluster: KafkaCluster,
    private readonly topic: string,
    private readonly onError: (error: unknown) => void,
  ) {}

  /** As PartitionSource.next. */
  async next(partition: number, offset: number, signal: AbortSignal): Promise<Following> {
    if (signal.aborted) return null
    const { promise, resolve } = Promise.withResolvers<Following>()
    const reader: Reader = { partition, offset, resolve }
    const drop = () => {
      if (this.wanting.get(partition) === reader) this.wanting.delete(partition)
      resolve(null)
    }
    signal.addEventListener('abort', drop, { once: true })
    this.wanting.set(partition, reader)
    this.release(partition)
    this.askAll()
    const following = await promise
    signal.removeEventListener('abort', drop)
    return following
  }

  /** The records that the partition's reader was given are handled, or given up. */
  release(partition: number): void {
    this.handling.delete(partition)
    if (this.handling.size === 0) this.allBack()
  }

  async stop(): Promise<void> {
    this.stopping.abort()
    for (const timer of this.leftOut.values()) clearTimeout(timer)
    await Promise.all(this.asked.values())
    await this.cluster.close()
  }

  private isStopped(): boolean {
    return this.stopping.signal.aborted
  }

  private askAll(): void {
    if (this.isStopped()) return
    const wanted = [...this.wanting.values()].filter(({ partition }) => !this.leftOut.has(partition))
    for (const [nodeId, ofBroker] of this.cluster.byLeader(this.topic, wanted)) {
      if (this.asked.has(nodeId)) continue
      const suspect = ofBroker.find(({ partition }) => this.suspects.has(partition))
      const asking = suspect === undefined ? ofBroker : [suspect]
      const answered = this.ask(nodeId, asking)
        .catch((error: unknown) => this.recover(error, asking))
        .finally(() => {
          this.asked.delete(nodeId)
          this.askAll()
        })
        .catch(this.onError)
      this.asked.set(nodeId, answered)
    }
  }

  private async ask(nodeId: string, wanted: readonly Reader[]): Promise<void> {
    const waitMs = this.handling.size > 0 || this.suspects.size > 0 ? BUSY_WAIT_MS : WAIT_MS
    const askedAt = Date.now()
    const fetched = await this.cluster.fetch(nodeId, this.topic, wanted, waitMs)
    this.again.reset()
    for (const { partition } of wanted) this.suspects.delete(partition)
    const hasGiven = this.give(fetched, wanted)
    if (hasGiven) {
      await this.pauseFor(GRACE_MS, true)
    } else {
      // A broker that has nothing takes its time to say so, unless what it has is empty batches.
      const leftMs = askedAt + waitMs - Date.now()
      if (leftMs > 0) await this.pauseFor(leftMs, false)
    }
  }

  /** Whether a reader was given records. */
  private give(fetched: Fetched, asked: readonly Reader[]): boolean {
    if (this.isStopped()) return false
    let hasGiven = false
    for (const { partition, from, records, next } of fetched.partitions) {
      const wanted = asked.find((each) => each.partition === partition)
      if (wanted === undefined || this.wanting.get(partition) !== wanted || next === from) continue
      this.wanting.delete(partition)
      this.handling.add(partition)
      wanted.resolve({ records, next })
      hasGiven = true
    }
    return hasGiven
  }

  private async pauseFor(ms: number, untilBack: boolean): Promise<void> {
    const early = new AbortController()
    const pause = pauseUntilAborted(ms, AbortSignal.any([early.signal, this.stopping.signal]))
    if (untilBack) this.allBack = () => early.abort()
    await pause
  }

  private async recover(error: unknown, asked: readonly Wanted[]): Promise<void> {
    if (this.isStopped()) return
    if (isOutOfRange(error)) {
      const { partition } = error as { partition?: unknown }
      const wanted = this.wanting.get(Number(partition))
      this.wanting.delete(Number(partition))
      wanted?.resolve('out-of-range')
      return
    }
    if (isUnreadable(error)) {
      const [first, ...others] = asked
      if (others.length > 0) for (const { partition } of asked) this.suspects.add(partition)
      else if (first !== undefined) this.leaveOut(first, error)
      return
    }
    this.onError(error)
    await this.again.wait(this.stopping.signal)
    if (!this.isStopped()) await this.cluster.recover(error).catch(this.onError)
  }

  /** Only this partition stops: what the broker gives of the others can be read. */
  private leaveOut({ partition, offset }: Wanted, cause: unknown): void {
    this.suspects.delete(partition)
    this.onError(
      new Error(`${this.topic}/${partition} can't be read from ${offset} on: ${messageOf(cause)}`, { cause }),
    )
    const timer = setTimeout(() => {
      this.leftOut.delete(partition)
      this.suspects.add(partition)
      this.askAll()
    }, LEFT_OUT_MS)
    this.leftOut.set(partition, timer)
  }
}

/** What kafkajs's decoding, Node's buffers and zlib say of bytes that are not what they should be. */
const DECODING_FAILURES: ReadonlySet<unknown> = new Set([
  'KafkaJSNotImplemented',
  'KafkaJSPartialMessageError',
  'KafkaJSUnsupportedMagicByteInMessageSet',
  'KafkaJSInvalidVarIntError',
  'KafkaJSInvalidLongError',
  'RangeError',
  'TypeError',
])

/** The broker gave a damaged batch, or one in a compression that kafkajs has not. */
function isUnreadable(error: unknown): boolean {
  const { name, code } = error as { name?: unknown; code?: unknown }
  return DECODING_FAILURES.has(name) || (typeof code === 'string' && code.startsWith('Z_'))
}
