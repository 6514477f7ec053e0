import { Backoff } from '#libs/runtime/timing.js'
import type { ConsumerSpec, Partition, PartitionRange, Position, RecordBatch } from './event-log.js'

/** The engine's access to one partition, for its loop. */
export interface PartitionSource {
  range(): Promise<PartitionRange>
  /** The group's committed offset; null if there is none. */
  committed(): Promise<number | null>
  commit(offset: number): Promise<void>
  /**
   * Resolves with the records from an offset on, once there are any; with 'out-of-range' if the log does not hold the
   * offset; with null if the signal aborts first.
   */
  next(offset: number, signal: AbortSignal): Promise<FollowingRecords | 'out-of-range' | null>
  /** Called when the loop has ended. */
  close(): void
}

export type FollowingRecords = Pick<RecordBatch, 'next' | 'records'>

const RETRY = { firstMs: 100, maxMs: 5_000 }
/** Under load, batches are small, and a commit after each one would cost more than handling it. */
const COMMIT_EVERY_MS = 200

/**
 * Handles one partition while it is assigned to a consumer: requests its start position, then handles batch after batch,
 * in order. If it started at the committed offset, it commits soon after the batches that it has handled, and at its end.
 * Those that it has not committed come again if the process is killed or the partition is revoked. Failures are retried
 * with backoff.
 */
export class PartitionLoop {
  /** The offset after the last handled batch. */
  private offset = 0
  /** Fetched but not handled yet. */
  private batch: RecordBatch | null = null
  private needsStart = true
  private needsCommit = false
  /** By `performance.now()`. */
  private committedAtMs = -Infinity
  private isRevoked = false
  private startsAtCommitted = false
  private hasStart = false
  private readonly started = Promise.withResolvers<undefined>()
  private readonly ending = new AbortController()
  /** Aborts the wait for records. */
  private interrupting = new AbortController()
  private readonly retry = new Backoff(RETRY)

  /** Resolves once the start position is known, or the loop has ended before that. */
  readonly whenStarted: Promise<unknown> = this.started.promise
  /** Resolves once no batch is being handled and no other will be. */
  readonly whenEnded: Promise<void>

  /** `after` is the end of the partition's previous loop, which may still be handling a batch. */
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

  /** Whether the consumer chose the start position, instead of the group's committed offset. */
  get hasOwnStart(): boolean {
    return !this.startsAtCommitted
  }

  /** Requests the start position again, after the batch in progress. */
  restart(): void {
    this.needsStart = true
    this.interrupting.abort()
  }

  /** Ends the loop after the batch in progress, whose signal it aborts. */
  end(): void {
    this.ending.abort()
    this.interrupting.abort()
  }

  /** Ends the loop without further commits: another consumer may already have the partition. */
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
        // An aborted handler may reject: the partition's next consumer receives the records.
        if (this.hasEnded()) break
        this.spec.onError(error, this.partition)
        await this.retry.wait(signal)
      }
    }
    if (this.needsCommit)
      await this.commit().catch((error: unknown) => this.spec.onError(error, this.partition))
    this.source.close()
    this.started.resolve(undefined)
  }

  private async step(signal: AbortSignal): Promise<void> {
    while (this.needsStart) await this.findStart()
    if (this.needsCommit && this.untilCommitMs() === 0) await this.commit()
    this.batch ??= await this.fetch(signal)
    if (this.batch === null) return
    const outcome = await this.spec.handle(this.batch, signal)
    this.offset = outcome === 'done' ? this.batch.next : outcome.seekTo
    this.batch = null
    this.needsCommit = this.startsAtCommitted
    this.retry.reset()
  }

  private async findStart(): Promise<void> {
    this.needsStart = false
    try {
      const range = await this.source.range()
      const start = await this.spec.startAt(range)
      this.startsAtCommitted = start === 'committed'
      this.offset =
        start === 'committed' ? await this.committedIn(range) : Math.max(start.offset, range.first)
    } catch (error) {
      this.needsStart = true
      throw error
    }
    this.batch = null
    this.needsCommit = false
    this.hasStart = true
    this.started.resolve(undefined)
  }

  /** The committed offset, or the first one of the range if the range does not contain it. */
  private async committedIn({ first, end }: PartitionRange): Promise<number> {
    const committed = await this.source.committed()
    return committed !== null && committed >= first && committed <= end ? committed : first
  }

  /** Null if there is nothing to handle: the loop ends, or must request its start position again. */
  private async fetch(signal: AbortSignal): Promise<RecordBatch | null> {
    if (this.hasEnded()) return null
    this.interrupting = new AbortController()
    const fetching = this.source.next(this.offset, this.interrupting.signal)
    if (this.needsCommit) await this.commitMeanwhile(fetching)
    const following = await fetching
    if (following === null || this.hasEnded()) return null
    if (following === 'out-of-range') {
      this.needsStart = true
      await this.retry.wait(signal)
      return null
    }
    return { ...this.partition, from: this.offset, next: following.next, records: following.records }
  }

  /** Commits when it is due, unless records arrive before that. */
  private async commitMeanwhile(fetching: Promise<unknown>): Promise<void> {
    const { promise: due, resolve } = Promise.withResolvers<'due'>()
    const timer = setTimeout(resolve, this.untilCommitMs(), 'due')
    try {
      if ((await Promise.race([due, fetching])) === 'due') await this.commit()
    } catch (error) {
      this.interrupting.abort()
      await Promise.allSettled([fetching])
      throw error
    } finally {
      clearTimeout(timer)
    }
  }

  private async commit(): Promise<void> {
    if (!this.isRevoked) await this.source.commit(this.offset)
    this.needsCommit = false
    this.committedAtMs = performance.now()
  }

  private untilCommitMs(): number {
    return Math.max(this.committedAtMs + COMMIT_EVERY_MS - performance.now(), 0)
  }

  private hasEnded(): boolean {
    return this.ending.signal.aborted
  }
}
