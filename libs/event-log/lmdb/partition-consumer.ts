import { setTimeout as pause } from 'node:timers/promises'
import type { ConsumerSpec, Partition, StoredRecord } from '../event-log.js'

export interface PartitionSource {
  /** The next records from an offset; none where the end is reached. */
  read(from: number): StoredRecord[]
  /** Called once a batch was handled, with the offset behind it. */
  commit(next: number): Promise<void>
}

const RETRY_MS = { first: 100, most: 5_000 }

/** Hands one partition's records to its consumer, batch after batch, in order. */
export class PartitionConsumer {
  private readonly stopping = new AbortController()
  private loop: Promise<void> = Promise.resolve()
  private wakeUp: (() => void) | null = null
  private retryMs = RETRY_MS.first

  constructor(
    private readonly spec: ConsumerSpec,
    private readonly partition: Partition,
    private offset: number,
    private readonly source: PartitionSource,
  ) {}

  start(): void {
    this.loop = this.run()
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

  private async run(): Promise<void> {
    const { signal } = this.stopping
    while (!signal.aborted) {
      try {
        await this.handleNext(signal)
      } catch (error) {
        this.spec.onError(error, this.partition)
        await this.pauseBeforeRetry(signal)
      }
    }
  }

  private async handleNext(signal: AbortSignal): Promise<void> {
    const records = this.source.read(this.offset)
    if (records.length === 0) return new Promise((resolve) => (this.wakeUp = resolve))
    const { topic, partition } = this.partition
    const outcome = await this.spec.handle({ topic, partition, records }, signal)
    this.offset = outcome === 'done' ? (records.at(-1)?.offset ?? this.offset) + 1 : outcome.seekTo
    await this.source.commit(this.offset)
    this.retryMs = RETRY_MS.first
  }

  private async pauseBeforeRetry(signal: AbortSignal): Promise<void> {
    const ms = this.retryMs
    this.retryMs = Math.min(ms * 2, RETRY_MS.most)
    await pause(ms, undefined, { signal }).catch((error: unknown) => {
      if (!signal.aborted) throw error
    })
  }
}
