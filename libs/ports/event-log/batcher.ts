import { setImmediate as nextTurn } from 'node:timers/promises'
import { LogUnavailableError } from './event-log.js'

export interface BatcherOptions<Item, Result> {
  maxItems: number
  /** Maximum bytes of a batch. A larger item is written alone. */
  maxBatchBytes: number
  /** Maximum bytes that wait; beyond it `add` rejects. */
  maxQueuedBytes: number
  sizeOf(item: Item): number
  /**
   * Writes a batch. Resolves with the results, in the order of the items, once all items with a result are durable. Items
   * without a result are rejected.
   */
  write(items: readonly Item[]): Promise<readonly (Result | undefined)[]>
}

interface Waiting<Item, Result> {
  item: Item
  bytes: number
  settle: PromiseWithResolvers<Result>
}

/**
 * Writes items in batches, one batch at a time: items that arrive during a write form the next batch. The slower the
 * writes, the larger the batches.
 */
export class Batcher<Item, Result> {
  private readonly queue: Waiting<Item, Result>[] = []
  private queuedBytes = 0
  private draining: Promise<void> | null = null
  private isClosed = false

  constructor(private readonly options: BatcherOptions<Item, Result>) {}

  /** Rejects with LogUnavailableError if too many bytes wait, the write fails, or the batcher is closed. */
  add(item: Item): Promise<Result> {
    if (this.isClosed) return Promise.reject(new LogUnavailableError('the event log is closed'))
    const bytes = this.options.sizeOf(item)
    if (this.queuedBytes > 0 && this.queuedBytes + bytes > this.options.maxQueuedBytes) {
      return Promise.reject(new LogUnavailableError('too many bytes wait to be written to the event log'))
    }
    this.queuedBytes += bytes
    const settle = Promise.withResolvers<Result>()
    this.queue.push({ item, bytes, settle })
    this.draining ??= this.drain()
    return settle.promise
  }

  /** Rejects new items; resolves once all earlier ones are settled. */
  async close(): Promise<void> {
    this.isClosed = true
    await this.draining
  }

  private async drain(): Promise<void> {
    // Items that arrive in the same turn of the event loop belong to the first batch.
    await nextTurn()
    while (this.queue.length > 0) await this.writeBatch(this.nextBatch())
    this.draining = null
  }

  private nextBatch(): Waiting<Item, Result>[] {
    let bytes = 0
    let count = 0
    for (const waiting of this.queue) {
      if (count === this.options.maxItems) break
      if (count > 0 && bytes + waiting.bytes > this.options.maxBatchBytes) break
      bytes += waiting.bytes
      count += 1
    }
    this.queuedBytes -= bytes
    return this.queue.splice(0, count)
  }

  private async writeBatch(batch: Waiting<Item, Result>[]): Promise<void> {
    try {
      const results = await this.options.write(batch.map(({ item }) => item))
      for (const [index, { settle }] of batch.entries()) {
        const result = results[index]
        if (result === undefined)
          settle.reject(new LogUnavailableError('the event log did not write the record'))
        else settle.resolve(result)
      }
    } catch (cause) {
      const error = new LogUnavailableError('the event log could not write', { cause })
      for (const { settle } of batch) settle.reject(error)
    }
  }
}
