import { setImmediate as nextTurn } from 'node:timers/promises'
import type {
  BatchOutcome,
  LogAppender,
  PartitionRange,
  StartPosition,
  StoredRecord,
} from '#libs/ports/event-log/event-log.js'
import { appendDeadLetter } from '#libs/ports/event-log/batch-decoding.js'
import { Doorbell } from '#libs/ports/signals/signals.js'
import type { EncodedRows } from '#libs/ports/usage/usage-rows.js'
import type { UsageBatch, UsageRange } from '#libs/ports/usage/usage-store.js'
import type { ConsumedBatch, RoleConsumers } from '#libs/role/role-consumers.js'
import { Backoff, unlessAborted } from '#libs/runtime/timing.js'
import { BatchesInDoubt, MAX_RANGES, writeRanges, type BatchesInDoubtOptions } from './batches-in-doubt.js'
import { BufferedRows, countOf, type RowConverter } from './event-rows.js'

export interface TopicSinkOptions extends BatchesInDoubtOptions {
  log: BatchesInDoubtOptions['log'] & LogAppender
  consumers: Pick<RoleConsumers, 'commit' | 'restart'>
  /** Aborts before `stop`. After that, nothing waits for the store, which may be unavailable. */
  closing: AbortSignal
}

/** How long rows are buffered. Usage figures are at most a few seconds old. */
const BUFFER_MS = 1_000
/** This many buffered rows are written without waiting longer. */
const FLUSH_ROWS = 100_000
/** With more buffered rows, no further batches are taken from the log. */
const MAX_ROWS = 200_000
const RETRY = { firstMs: 100, maxMs: 5_000 }

/**
 * Writes one topic's events to the usage store, effectively once.
 *
 * The store holds the offset that each partition is written to, and updates it after the rows. If a process dies
 * while it writes a batch, the batch is in doubt: the store may have some of its rows but not the new offset. So
 * before a batch is written, its ranges are committed as a note of the group's offsets, which only the current
 * consumer of the partitions can do. The next consumer finds the note whose range starts at the store's offset, and
 * writes exactly the same ranges again, even if other processes have some of the partitions by then. The
 * deduplication token is computed from the ranges, so the store drops the rows that it already has. A process that
 * only seemed dead does no harm: it may finish the batch of its note, but can't commit another note.
 *
 * A store that was emptied or restored from an older copy has lower offsets, and is filled from there.
 */
export class TopicSink {
  private readonly buffered = new BufferedRows()
  private readonly converters = new Map<number, RowConverter>()
  private readonly inDoubt: BatchesInDoubt
  private readonly bell = new Doorbell()
  private capacityFreed = Promise.withResolvers<undefined>()
  private readonly stopping = new AbortController()
  private readonly retryPause = new Backoff(RETRY)
  private loop: Promise<void> = Promise.resolve()
  /** The batch that is being written. */
  private writing: { ranges: readonly UsageRange[]; done: Promise<void> } | null = null

  constructor(private readonly options: TopicSinkOptions) {
    this.inDoubt = new BatchesInDoubt(options)
  }

  start(): void {
    this.loop = this.run()
  }

  /** Resolves with the start offset of a partition, after writing a batch in doubt again. */
  async startAt(range: PartitionRange): Promise<StartPosition> {
    const { partition } = range
    const { closing } = this.options
    this.buffered.drop(partition)
    this.signalCapacity()
    // No more batches are taken, so any offset will do.
    if (closing.aborted) return { offset: range.first }
    // This process may still be writing a batch of the partition. Afterwards the batch is in the store, or in doubt.
    if (this.writing?.ranges.some((each) => each.partition === partition) === true) {
      await unlessAborted(this.writing.done, closing)
    }
    const offset = await this.inDoubt.settle(range)
    this.converters.set(partition, await this.inDoubt.rowsFrom(partition, offset))
    return { offset }
  }

  /** Resolves once the batch is buffered. While too many rows are buffered, waits first. */
  async take(batch: ConsumedBatch): Promise<BatchOutcome> {
    const { partition, from, signal } = batch
    while (this.buffered.count >= MAX_ROWS) await unlessAborted(this.capacityFreed.promise, signal)
    // Decoding a batch takes many milliseconds, and batches of several partitions may come at once.
    await nextTurn()
    signal.throwIfAborted()
    this.options.closing.throwIfAborted()
    const converter = this.converters.get(partition)
    if (converter === undefined) return { seekTo: from }
    const { rows, undecodable, next, outcome } = converter.take(batch)
    await this.appendDeadLetters(partition, undecodable)
    // The partition was restarted meanwhile: `startAt` is about to be called again.
    if (this.converters.get(partition) !== converter) return { seekTo: from }
    // Called after the dead letters, because `rows` remembers the events: if a dead letter fails, the batch comes again.
    this.buffered.add({ partition, first: from, end: next }, rows())
    this.bell.ring()
    return outcome
  }

  /** Writes the buffered rows without retries, and resolves once no write is in progress. */
  async stop(): Promise<void> {
    this.stopping.abort()
    this.bell.ring()
    await this.loop
  }

  private async run(): Promise<void> {
    while (!this.isStopping()) {
      await this.untilDue()
      while (this.isDue()) {
        const isWritten = await this.flush()
        if (!isWritten && this.isStopping()) return
      }
    }
  }

  private isDue(): boolean {
    const { sinceMs, count } = this.buffered
    if (sinceMs === null) return false
    return this.isStopping() || count >= FLUSH_ROWS || performance.now() - sinceMs >= BUFFER_MS
  }

  private isStopping(): boolean {
    return this.stopping.signal.aborted
  }

  private async untilDue(): Promise<void> {
    while (!this.isDue() && !this.isStopping()) {
      const { sinceMs } = this.buffered
      await this.bell.wait(
        sinceMs === null ? BUFFER_MS : Math.max(sinceMs + BUFFER_MS - performance.now(), 1),
      )
    }
  }

  /** Writes buffered rows. Returns whether that succeeded; if not, restarts their partitions. */
  private async flush(): Promise<boolean> {
    const { ranges, rows } = this.buffered.take(MAX_RANGES)
    this.signalCapacity()
    const { promise, resolve } = Promise.withResolvers<undefined>()
    this.writing = { ranges, done: promise }
    try {
      const isWritten = await this.write(ranges, rows)
      // The batch may be in the store or not, so rows buffered since then can't be written before that is known.
      if (!isWritten) this.restart(ranges)
      return isWritten
    } finally {
      this.writing = null
      resolve(undefined)
    }
  }

  private async write(ranges: readonly UsageRange[], rows: readonly EncodedRows[]): Promise<boolean> {
    const { topic, log, consumers, sink, metrics, logger } = this.options
    const { signal } = this.stopping
    const started = performance.now()
    const note = writeRanges(ranges)
    try {
      const noted = ranges.map(({ partition, first }) => ({ topic, partition, offset: first, note }))
      await consumers.commit(topic, noted)
    } catch (error) {
      metrics.failures.inc({ topic })
      logger.warn(
        { err: error, topic, ranges: note },
        'committing the ranges of a batch failed: restarting its partitions',
      )
      await this.retryPause.wait(signal)
      return false
    }
    const batch: UsageBatch = { logId: log.logId, topic, ranges, rows }
    for (;;) {
      try {
        await sink.write(batch)
        break
      } catch (error) {
        metrics.failures.inc({ topic })
        logger.error({ err: error, topic, ranges: note }, 'writing a batch failed: retrying')
        await this.retryPause.wait(signal)
        if (this.isStopping()) return false
      }
    }
    this.retryPause.reset()
    const ms = performance.now() - started
    const count = countOf(rows)
    metrics.rows.inc({ topic }, count)
    metrics.batchSeconds.observe({ topic }, ms / 1_000)
    logger.debug({ topic, ranges: note, rows: count, ms: Math.round(ms) }, 'usage rows written')
    if (this.buffered.sinceMs === null) await this.commitEnds(ranges)
    return true
  }

  /** Commits the end offsets for operators who look at the group's lag. Mayfly does not use them. */
  private async commitEnds(ranges: readonly UsageRange[]): Promise<void> {
    const { topic, consumers, logger } = this.options
    const ends = ranges.map(({ partition, end }) => ({ topic, partition, offset: end, note: '' }))
    await consumers
      .commit(topic, ends)
      .catch((error: unknown) =>
        logger.debug({ err: error, topic }, 'committing the end offsets of a batch failed'),
      )
  }

  private restart(ranges: readonly UsageRange[]): void {
    for (const { partition } of ranges) {
      this.buffered.drop(partition)
      this.converters.delete(partition)
      this.options.consumers.restart({ topic: this.options.topic, partition })
    }
    this.signalCapacity()
  }

  private signalCapacity(): void {
    this.capacityFreed.resolve(undefined)
    this.capacityFreed = Promise.withResolvers()
  }

  /** For usage-events only: the projector writes the dead letters of the other topics. */
  private async appendDeadLetters(
    partition: number,
    undecodable: readonly { record: StoredRecord; reason: string }[],
  ): Promise<void> {
    const { topic, log, logger, metrics } = this.options
    if (topic !== 'usage-events') return
    for (const { record, reason } of undecodable) {
      await appendDeadLetter(log, { topic, partition }, record, reason)
      metrics.deadLetters.inc({ topic })
      const position = { topic, partition, offset: record.offset }
      logger.error({ ...position, reason }, 'a record could not be decoded: written to the dead letters')
    }
  }
}
