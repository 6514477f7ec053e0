import { GrowingPause } from '#libs/runtime/timing/waiting.js'
import type { ConsumerSpec, Partition, PartitionRange, Position, RecordBatch } from './event-log.js'

/** What an engine gives of one partition to the loop that handles it. */
export interface PartitionSource {
  range(): Promise<PartitionRange>
  /** The group's committed offset; null if there is none. */
  committed(): Promise<number | null>
  commit(offset: number): Promise<void>
  /**
   * Resolves with what follows an offset, once there is anything; with 'out-of-range' if the log does not hold the
   * offset; with null if the signal aborts first.
   */
  next(offset: number, signal: AbortSignal): Promise<FollowingRecords | 'out-of-range' | null>
  /** No more will be asked for. */
  close(): void
}

export type FollowingRecords = Pick<RecordBatch, 'next' | 'records'>

const RETRY = { firstMs: 100, mostMs: 5_000 }

/**
 * Handles one partition for as long as it is assigned to a consumer: asks for its start position, then handles batch
 * after batch, in order, and commits the offset behind each if the start position was the committed one. Whatever fails is
 * tried again after a growing pause.
 */
export class PartitionLoop {
  /** The offset behind all that was handled. */
  private offset = 0
  /** Fetched, and not handled yet. */
  private batch: RecordBatch | null = null
  private mustLocate = true
  private mustCommit = false
  private isRevoked = false
  private startsAtCommitted = false
  private hasStart = false
  private readonly started = Promise.withResolvers<undefined>()
  private readonly ending = new AbortController()
  /** Ends the wait for records. */
  private interrupting = new AbortController()
  private readonly retry = new GrowingPause(RETRY)

  /** Resolves once the start position is known, or the loop has ended before that. */
  readonly whenStarted: Promise<unknown> = this.started.promise
  /** Resolves once nothing of the partition is being handled, and nothing more will be. */
  readonly whenEnded: Promise<void>

  /** `after` is the end of the loop before this one, which may still be handling a batch of the same partition. */
  constructor(
    private readonly spec: Pick<ConsumerSpec, 'startAt' | 'handle' | 'onError'>,
    private readonly partition: Partition,
    private readonly source: PartitionSource,
    after: Promise<void> = Promise.resolve(),
  ) {
    this.whenEnded = after.then(() => this.run())
  }

  /** Null until the start position is known. */
  get position(): Position | null {
    const { topic, partition } = this.partition
    return this.hasStart ? { topic, partition, offset: this.offset } : null
  }

  /** Whether the consumer itself, not the group's committed offset, says where the partition begins. */
  get hasOwnStart(): boolean {
    return !this.startsAtCommitted
  }

  /** Asks for the start position again, after the batch under way. */
  restart(): void {
    this.mustLocate = true
    this.interrupting.abort()
  }

  /** Ends the loop after the batch under way, whose handler is told to finish. */
  end(): void {
    this.ending.abort()
    this.interrupting.abort()
  }

  /** Ends the loop and commits nothing more: another consumer may have the partition already. */
  revoke(): void {
    this.isRevoked = true
    this.end()
  }

  private async run(): Promise<void> {
    const { signal } = this.ending
    while (!signal.aborted) {
      try {
        await this.step(signal)
      } catch (error) {
        // A handler that was told to finish may give up: the records come to the partition's next consumer.
        if (this.hasEnded()) break
        this.spec.onError(error, this.partition)
        await this.retry.wait(signal)
      }
    }
    this.source.close()
    this.started.resolve(undefined)
  }

  private async step(signal: AbortSignal): Promise<void> {
    while (this.mustLocate) await this.locate()
    if (this.mustCommit) await this.commit()
    this.batch ??= await this.fetch(signal)
    if (this.batch === null) return
    const outcome = await this.spec.handle(this.batch, signal)
    this.offset = outcome === 'done' ? this.batch.next : outcome.seekTo
    this.batch = null
    this.mustCommit = this.startsAtCommitted
    if (this.mustCommit) await this.commit()
    this.retry.reset()
  }

  private async locate(): Promise<void> {
    this.mustLocate = false
    try {
      const range = await this.source.range()
      const start = await this.spec.startAt(range)
      this.startsAtCommitted = start === 'committed'
      this.offset =
        start === 'committed' ? await this.committedIn(range) : Math.max(start.offset, range.first)
    } catch (error) {
      this.mustLocate = true
      throw error
    }
    this.batch = null
    this.mustCommit = false
    this.hasStart = true
    this.started.resolve(undefined)
  }

  /** The first offset of the range if it does not hold the committed one. */
  private async committedIn({ first, end }: PartitionRange): Promise<number> {
    const committed = await this.source.committed()
    return committed !== null && committed >= first && committed <= end ? committed : first
  }

  /** Null if there is nothing to handle yet: the loop ends, or asks for its start position again. */
  private async fetch(signal: AbortSignal): Promise<RecordBatch | null> {
    if (this.hasEnded()) return null
    this.interrupting = new AbortController()
    const following = await this.source.next(this.offset, this.interrupting.signal)
    if (following === null || this.hasEnded()) return null
    if (following === 'out-of-range') {
      this.mustLocate = true
      await this.retry.wait(signal)
      return null
    }
    return { ...this.partition, from: this.offset, next: following.next, records: following.records }
  }

  private async commit(): Promise<void> {
    if (!this.isRevoked) await this.source.commit(this.offset)
    this.mustCommit = false
  }

  private hasEnded(): boolean {
    return this.ending.signal.aborted
  }
}
