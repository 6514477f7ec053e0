import type { Fetched, FetchedPartition } from './fetched.js'
import type { KafkaCluster } from './kafka-cluster.js'
import { isOutOfRange } from './kafka-reader.js'
import { GrowingPause, pauseUntilAborted } from '#libs/timing/pause.js'

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
const FETCH_AGAIN = { firstMs: 100, mostMs: 2_000 }

/**
 * Fetches for all readers that want records, one request per broker at a time. kafkajs's own fetching waits for the
 * handling of all that a broker gave before it asks that broker again: one slow partition would block the others.
 */
export class PartitionFetcher {
  private readonly wanting = new Map<number, PartitionReader>()
  /** Requests under way, and the pauses behind them, by broker. */
  private readonly asked = new Map<string, Promise<void>>()
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
    if (this.wanting.get(reader.partition) === reader) this.wanting.delete(reader.partition)
  }

  async stop(): Promise<void> {
    this.stopping.abort()
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
      const answered = this.ask(nodeId, readers)
        .catch((error: unknown) => this.recover(error))
        .finally(() => {
          this.asked.delete(nodeId)
          this.askAll()
        })
        .catch(this.onError)
      this.asked.set(nodeId, answered)
    }
  }

  private async ask(nodeId: string, readers: readonly PartitionReader[]): Promise<void> {
    const waitMs = this.busy > 0 ? BUSY_WAIT_MS : WAIT_MS
    const begunAt = Date.now()
    const wanted = readers.map(({ partition, offset }) => ({ partition, offset }))
    const fetched = await this.cluster.fetch(nodeId, this.topic, wanted, waitMs)
    this.again.reset()
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

  private async recover(error: unknown): Promise<void> {
    if (this.isStopped()) return
    if (isOutOfRange(error)) {
      const { partition } = error as { partition?: unknown }
      const reader = this.wanting.get(Number(partition))
      reader?.locateAgain()
      return
    }
    this.onError(error)
    await this.again.wait(this.stopping.signal)
    if (!this.isStopped()) await this.cluster.recover(error).catch(this.onError)
  }
}
