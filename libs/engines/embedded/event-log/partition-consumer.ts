import { GrowingPause } from '#libs/runtime/timing/pause.js'
import type { ConsumerSpec, Partition, Position, StoredRecord } from '#libs/ports/event-log/event-log.js'

export interface PartitionSource {
  /** Where to go on from. */
  locate(): Promise<number>
  /** The next records from an offset; none if the end is reached. */
  read(from: number): StoredRecord[]
  /** Called once a batch was handled, with the offset behind it. */
  commit(next: number): Promise<void>
}

const RETRY = { firstMs: 100, mostMs: 5_000 }

/** Hands one partition's records to its consumer, batch after batch, in order. */
export class PartitionConsumer {
  private readonly stopping = new AbortController()
  private loop: Promise<void> = Promise.resolve()
  private wakeUp: (() => void) | null = null
  private isToBeLocated = false
  private readonly retry = new GrowingPause(RETRY)

  constructor(
    private readonly spec: ConsumerSpec,
    private readonly partition: Partition,
    private offset: number,
    private readonly source: PartitionSource,
  ) {}

  get position(): Position {
    const { topic, partition } = this.partition
    return { topic, partition, offset: this.offset }
  }

  start(): void {
    this.loop = this.run()
  }

  locateAgain(): void {
    this.isToBeLocated = true
    this.wake()
  }

  /** There may be more to read. */
  wake(): void {
    this.wakeUp?.()
  }

  async stop(): Promise<void> {
    this.stopping.abort()
    this.wake()
    await this.loop
  }

  private isStopped(): boolean {
    return this.stopping.signal.aborted
  }

  private async locate(): Promise<void> {
    this.isToBeLocated = false
    try {
      this.offset = await this.source.locate()
    } catch (error) {
      this.isToBeLocated = true
      throw error
    }
  }

  private async run(): Promise<void> {
    const { signal } = this.stopping
    while (!this.isStopped()) {
      try {
        await this.handleNext(signal)
      } catch (error) {
        // Told to hurry, it gave up: what it left comes again after the next start.
        if (this.isStopped()) return
        this.spec.onError(error, this.partition)
        await this.retry.wait(signal)
      }
    }
  }

  private async handleNext(signal: AbortSignal): Promise<void> {
    while (this.isToBeLocated) await this.locate()
    // Nothing would wake it any more.
    if (this.isStopped()) return
    const records = this.source.read(this.offset)
    if (records.length === 0) return new Promise((resolve) => (this.wakeUp = resolve))
    const { topic, partition } = this.partition
    const next = (records.at(-1)?.offset ?? this.offset) + 1
    const outcome = await this.spec.handle({ topic, partition, from: this.offset, next, records }, signal)
    this.offset = outcome === 'done' ? next : outcome.seekTo
    await this.source.commit(this.offset)
    this.retry.reset()
  }
}
