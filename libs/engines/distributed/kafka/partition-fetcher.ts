import type { Fetched, FetchedPartition } from './fetched.js'
import type { KafkaCluster } from './kafka-cluster.js'
import { isOutOfRange } from './kafka-reader.js'
import { GrowingPause, pauseUntilAborted } from '#libs/runtime/timing/pause.js'
import { messageOf } from '#libs/runtime/fault/message-of.js'

/** One who reads a partition from an offset on. */
export interface PartitionReader {
  readonly partition: number
  readonly offset: number
  /** Given what follows the offset; resolves once it is dealt with. */
  take(fetched: FetchedPartition): Promise<void>
  /** The brokers don't have the offset. */
  locateAgain(): void
}

/** How long a broker holds an answer back for records to come. */
const WAIT_MS = 250
/** The same where a reader is busy, which may want more before the answer comes. */
const BUSY_WAIT_MS = 50
/** How long all are waited for that were given records, so that they are in the next request. */
const GRACE_MS = 20
const BENCHED_MS = 5_000
const FETCH_AGAIN = { firstMs: 100, mostMs: 2_000 }

/**
 * Fetches for all readers that want records, one request per broker at a time. kafkajs's own fetching waits for the
 * handling of all that a broker gave before it asks that broker again: one slow partition would block the others.
 */
export class PartitionFetcher {
  private readonly wanting = new Map<number, PartitionReader>()
  /** Requests under way, and the pauses behind them, by broker. */
  private readonly asked = new Map<string, Promise<void>>()
  /** Partitions of an answer that could not be read: each is asked for alone until it is known which one did it. */
  private readonly suspects = new Set<number>()
  /** Partitions that can't be read now, and the wait for them to be tried again. */
  private readonly benched = new Map<PartitionReader, NodeJS.Timeout>()
  private readonly stopping = new AbortController()
  private readonly again = new GrowingPause(FETCH_AGAIN)
  private busy = 0

  constructor(
    private readonly cluster: KafkaCluster,
    private readonly topic: string,
    private readonly onError: (error: unknown) => void,
  ) {}

  want(reader: PartitionReader): void {
    this.wanting.set(reader.partition, reader)
    this.askAll()
  }

  drop(reader: PartitionReader): void {
    clearTimeout(this.benched.get(reader))
    this.benched.delete(reader)
    if (this.wanting.get(reader.partition) === reader) this.wanting.delete(reader.partition)
  }

  async stop(): Promise<void> {
    this.stopping.abort()
    for (const reader of [...this.benched.keys()]) this.drop(reader)
    await Promise.all(this.asked.values())
    await this.cluster.close()
  }

  private isStopped(): boolean {
    return this.stopping.signal.aborted
  }

  private askAll(): void {
    if (this.isStopped()) return
    for (const [nodeId, readers] of this.cluster.byLeader(this.topic, this.wanting.values())) {
      if (this.asked.has(nodeId)) continue
      const suspect = readers.find(({ partition }) => this.suspects.has(partition))
      const asking = suspect === undefined ? readers : [suspect]
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

  private async ask(nodeId: string, readers: readonly PartitionReader[]): Promise<void> {
    const waitMs = this.busy > 0 || this.suspects.size > 0 ? BUSY_WAIT_MS : WAIT_MS
    const begunAt = Date.now()
    const wanted = readers.map(({ partition, offset }) => ({ partition, offset }))
    const fetched = await this.cluster.fetch(nodeId, this.topic, wanted, waitMs)
    this.again.reset()
    for (const { partition } of readers) this.suspects.delete(partition)
    const given = this.give(fetched, readers)
    const isIdle = given.length === 0
    // A broker that has nothing takes its time to say so, unless what it has is empty batches.
    const pauseMs = isIdle ? begunAt + waitMs - Date.now() : GRACE_MS
    if (pauseMs > 0) await this.pauseFor(pauseMs, isIdle ? [] : given)
  }

  private give(fetched: Fetched, readers: readonly PartitionReader[]): Promise<void>[] {
    if (this.isStopped()) return []
    return fetched.partitions.flatMap((answer) => {
      const reader = readers.find(({ partition }) => partition === answer.partition)
      const isStill = reader !== undefined && this.wanting.get(answer.partition) === reader
      if (!isStill || reader.offset !== answer.from || answer.next === answer.from) return []
      this.wanting.delete(answer.partition)
      this.busy += 1
      return [reader.take(answer).finally(() => (this.busy -= 1))]
    })
  }

  private async pauseFor(ms: number, given: readonly Promise<void>[]): Promise<void> {
    const early = new AbortController()
    const signal = AbortSignal.any([early.signal, this.stopping.signal])
    const pause = pauseUntilAborted(ms, signal)
    await (given.length === 0 ? pause : Promise.race([Promise.all(given), pause]))
    early.abort()
  }

  private async recover(error: unknown, readers: readonly PartitionReader[]): Promise<void> {
    if (this.isStopped()) return
    if (isOutOfRange(error)) {
      const { partition } = error as { partition?: unknown }
      const reader = this.wanting.get(Number(partition))
      reader?.locateAgain()
      return
    }
    if (isUnreadable(error)) {
      const [reader, ...others] = readers
      if (others.length > 0) for (const { partition } of readers) this.suspects.add(partition)
      else if (reader !== undefined) this.bench(reader, error)
      return
    }
    this.onError(error)
    await this.again.wait(this.stopping.signal)
    if (!this.isStopped()) await this.cluster.recover(error).catch(this.onError)
  }

  /** It alone stands still: what a broker gives of the others can be read. */
  private bench(reader: PartitionReader, cause: unknown): void {
    const { partition, offset } = reader
    this.suspects.delete(partition)
    this.drop(reader)
    this.onError(
      new Error(`${this.topic}/${partition} can't be read from ${offset} on: ${messageOf(cause)}`, { cause }),
    )
    const timer = setTimeout(() => {
      this.benched.delete(reader)
      this.suspects.add(partition)
      this.want(reader)
    }, BENCHED_MS)
    this.benched.set(reader, timer)
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
