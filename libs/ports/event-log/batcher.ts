import { LogUnavailableError } from './event-log.js'

export interface BatcherOptions<Item, Result> {
  /** Most items in one batch. */
  maxItems: number
  /** Most bytes in one batch; an item larger than that goes alone. */
  maxBatchBytes: number
  /** Most bytes that wait; past it `add` rejects. */
  maxQueuedBytes: number
  sizeOf(item: Item): number
  /**
   * Writes a batch; resolves with one result per item, in order, once all are durable that have one. An item without
   * a result is rejected.
   */
  write(items: readonly Item[]): Promise<readonly (Result | undefined)[]>
}

interface Waiting<Item, Result> {
  item: Item
  bytes: number
  settle: PromiseWithResolvers<Result>
}

/**
 * Gathers what comes while a batch is being written into the next one: one write under way at a time, each
 * item's promise its own. The slower the writes, the larger the batches.
 */
export class Batcher<Item, Result> {
  private readonly queue: Waiting<Item, Result>[] = []
  private queuedBytes = 0
  private draining: Promise<void> | null = null
  private isClosed = false

  constructor(private readonly options: BatcherOptions<Item, Result>) {}

  /** Rejects with LogUnavailableError if too much waits already, the write failed, or it was closed. */
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

  /** Refuses what comes from now on; resolves once all that came before is settled. */
  async close(): Promise<void> {
    this.isClosed = true
    await this.draining
  }

  private async drain(): Promise<void> {
    // What else arrives in this turn of the event loop belongs to the first batch.
    await new Promise(setImmediate)
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
        if (result === undefined) settle.reject(new LogUnavailableError('the event log gave no position'))
        else settle.resolve(result)
      }
    } catch (cause) {
      const error = new LogUnavailableError('the event log could not write', { cause })
      for (const { settle } of batch) settle.reject(error)
    }
  }
}
