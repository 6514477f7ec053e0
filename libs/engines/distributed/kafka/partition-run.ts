import type { ConsumerSpec, Partition, PartitionRange, RecordBatch } from '#libs/ports/event-log/event-log.js'
import type { FetchedPartition } from './fetched.js'
import type { PartitionFetcher, PartitionReader } from './partition-fetcher.js'
import { GrowingPause } from '#libs/runtime/timing/pause.js'

export interface PartitionPlace {
  range(partition: number): Promise<PartitionRange>
  /** The group's offset; null if nothing was committed. */
  committed(partition: number): Promise<number | null>
  commit(partition: number, offset: number): Promise<void>
}

const RETRY = { firstMs: 100, mostMs: 5_000 }

/** One partition while it is this consumer's: from its start position on, batch after batch. */
export class PartitionRun implements PartitionReader {
  offset = 0
  /** Whether the offset is known yet. */
  isLocated = false
  private readonly ending = new AbortController()
  private readonly retry = new GrowingPause(RETRY)
  private isCommitting = false
  private isToBeLocated = false
  /** Whether the fetcher has been asked for more. */
  private isWaiting = false
  private isRevoked = false
  private underWay: Promise<void>

  constructor(
    private readonly spec: ConsumerSpec,
    readonly partition: number,
    private readonly place: PartitionPlace,
    private readonly fetcher: Pick<PartitionFetcher, 'want' | 'drop'>,
    /** The end of the run before, which may have a batch in its hands still. */
    previous: Promise<void>,
  ) {
    this.underWay = previous.then(() => this.locate())
  }

  /** Resolves once the start position has been asked for, and nothing of the partition is being handled. */
  get settled(): Promise<void> {
    return this.underWay
  }

  /** Ends the run; what its handler still does may be another's already, so that nothing of it is committed. */
  revoke(): void {
    this.isRevoked = true
    this.end()
  }

  /** Ends the run after the batch under way, which is told to hurry. */
  end(): void {
    this.ending.abort()
    this.fetcher.drop(this)
  }

  /** Asks for the start position anew once nothing is being handled. */
  locateAgain(): void {
    this.isToBeLocated = true
    if (this.isWaiting) this.goOn()
  }

  /** Whether its consumer, not what was committed, says where it begins. */
  get hasOwnStart(): boolean {
    return !this.isCommitting
  }

  take(fetched: FetchedPartition): Promise<void> {
    this.isWaiting = false
    this.underWay = this.handle(fetched)
    return this.underWay
  }

  private get where(): Partition {
    return { topic: this.spec.topic, partition: this.partition }
  }

  private async locate(): Promise<void> {
    this.isToBeLocated = false
    await this.untilDone(async () => {
      const range = await this.place.range(this.partition)
      const start = await this.spec.startAt(range)
      this.isCommitting = start === 'committed'
      this.offset =
        start === 'committed' ? await this.groupOffset(range) : Math.max(start.offset, range.first)
      this.isLocated = true
    })
    this.goOn()
  }

  private async groupOffset({ first, end }: PartitionRange): Promise<number> {
    const committed = await this.place.committed(this.partition)
    return committed !== null && committed >= first && committed <= end ? committed : first
  }

  private async handle({ from, records, next }: FetchedPartition): Promise<void> {
    await this.untilDone(() => this.handleOnce({ ...this.where, from, next, records }))
    this.goOn()
  }

  private async handleOnce(batch: RecordBatch): Promise<void> {
    const outcome = await this.spec.handle(batch, this.ending.signal)
    this.offset = outcome === 'done' ? batch.next : outcome.seekTo
    if (this.isCommitting && !this.isRevoked) await this.place.commit(this.partition, this.offset)
  }

  /** Does it again after a pause where it rejects, as long as the run lasts. */
  private async untilDone(work: () => Promise<void>): Promise<void> {
    const { signal } = this.ending
    while (!this.hasEnded()) {
      try {
        await work()
        this.retry.reset()
        return
      } catch (error) {
        // Told to hurry, it gave up: what it left comes to the partition's next consumer.
        if (this.hasEnded()) return
        this.spec.onError(error, this.where)
        await this.retry.wait(signal)
      }
    }
  }

  private hasEnded(): boolean {
    return this.ending.signal.aborted
  }

  private goOn(): void {
    if (this.hasEnded()) return
    this.isWaiting = !this.isToBeLocated
    if (this.isWaiting) {
      this.fetcher.want(this)
    } else {
      this.fetcher.drop(this)
      this.underWay = this.locate()
    }
  }
}
