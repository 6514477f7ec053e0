import { setImmediate as nextTurn, setTimeout as pause } from 'node:timers/promises'
import type {
  BatchOutcome,
  LogAppender,
  PartitionRange,
  StartPosition,
  StoredRecord,
} from '#libs/ports/event-log/event-log.js'
import { appendDeadLetter } from '#libs/ports/event-log/batch-decoding.js'
import type { EncodedRows } from '#libs/ports/usage/usage-rows.js'
import type { UsageBatch, UsageRange } from '#libs/ports/usage/usage-store.js'
import type { ConsumedBatch, RoleConsumers } from '#libs/role/role-consumers.js'
import { Backoff, PeriodicTask, unlessAborted } from '#libs/runtime/timing.js'
import { BatchesInDoubt, MAX_RANGES, writeRanges, type BatchesInDoubtOptions } from './batches-in-doubt.js'
import { countOf, type RowConverter } from './event-rows.js'

export interface TopicSinkOptions extends BatchesInDoubtOptions {
  log: BatchesInDoubtOptions['log'] & LogAppender
  consumers: Pick<RoleConsumers, 'commit' | 'restart'>
  /** Aborts before `stop`. After that, nothing waits for the store, which may be unavailable. */
  closing: AbortSignal
}

interface BufferedRange extends UsageRange {
  rows: EncodedRows[]
}

/** The pause between writes. Usage figures are at most a few seconds old. */
const WRITE_EVERY_MS = 1_000
/** This many buffered rows are written without a pause. */
const MANY_ROWS = 100_000
/** With more buffered rows, no further batches are taken from the log. */
const MAX_ROWS = 200_000
const CAPACITY_CHECK_MS = 50
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
  /** Rows that wait to be written: a range without gaps for each partition. */
  private readonly buffered = new Map<number, BufferedRange>()
  private readonly converters = new Map<number, RowConverter>()
  private readonly inDoubt: BatchesInDoubt
  private readonly retryPause = new Backoff(RETRY)
  private readonly writes = new PeriodicTask({
    work: (signal) => this.writeBuffered(signal),
    everyMs: WRITE_EVERY_MS,
  })
  /** Settles when no batch is being written. */
  private writing: Promise<unknown> = Promise.resolve()

  constructor(private readonly options: TopicSinkOptions) {
    this.inDoubt = new BatchesInDoubt(options)
  }

  start(): void {
    this.writes.start()
  }

  /** Resolves with the start offset of a partition, after writing a batch in doubt again. */
  async startAt(range: PartitionRange): Promise<StartPosition> {
    const { partition } = range
    const { closing } = this.options
    this.buffered.delete(partition)
    // No more batches are taken, so any offset will do.
    if (closing.aborted) return { offset: range.first }
    // This process may still be writing a batch of the partition. Afterwards the batch is in the store, or in doubt.
    await unlessAborted(this.writing, closing)
    const offset = await this.inDoubt.settle(range)
    this.converters.set(partition, await this.inDoubt.rowsFrom(partition, offset))
    return { offset }
  }

  /** Resolves once the batch is buffered. While too many rows are buffered, waits first. */
  async take(batch: ConsumedBatch): Promise<BatchOutcome> {
    const { partition, from, signal } = batch
    while (this.bufferedRows() >= MAX_ROWS) await pause(CAPACITY_CHECK_MS, undefined, { signal })
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
    this.buffer({ partition, first: from, end: next }, rows())
    return outcome
  }

  /** Writes the buffered rows without retries, and resolves once no write is in progress. */
  async stop(): Promise<void> {
    await this.writes.stop()
    await this.writeBuffered(AbortSignal.abort())
  }

  private bufferedRows(): number {
    return [...this.buffered.values()].reduce((sum, { rows }) => sum + countOf(rows), 0)
  }

  /** Throws RangeError if the range does not start where the partition's buffered range ends. */
  private buffer({ partition, first, end }: UsageRange, rows: readonly EncodedRows[]): void {
    const before = this.buffered.get(partition)
    if (before === undefined) this.buffered.set(partition, { partition, first, end, rows: [...rows] })
    else if (before.end !== first) throw new RangeError(`${first} does not follow on ${before.end}`)
    else {
      before.end = end
      before.rows.push(...rows)
    }
  }

  /** Writes the rows of each partition once, and goes on while many rows wait. Ends early if a write fails. */
  private async writeBuffered(signal: AbortSignal): Promise<void> {
    let batches = Math.ceil(this.buffered.size / MAX_RANGES)
    while (this.buffered.size > 0 && (batches > 0 || this.bufferedRows() >= MANY_ROWS)) {
      batches -= 1
      const writing = this.writeBatch(signal)
      this.writing = writing
      if (!(await writing)) return
    }
  }

  /** Writes the rows of some partitions. Returns whether that succeeded; if not, restarts the partitions. */
  private async writeBatch(signal: AbortSignal): Promise<boolean> {
    const taken = [...this.buffered.values()].slice(0, MAX_RANGES)
    for (const { partition } of taken) this.buffered.delete(partition)
    const ranges = taken.map(({ partition, first, end }) => ({ partition, first, end }))
    const rows = taken.flatMap((each) => each.rows)
    const isWritten = await this.write(ranges, rows, signal)
    // The batch may be in the store or not, so rows buffered since then can't be written before that is known.
    if (!isWritten) this.restart(ranges)
    return isWritten
  }

  private async write(
    ranges: readonly UsageRange[],
    rows: readonly EncodedRows[],
    signal: AbortSignal,
  ): Promise<boolean> {
    const { topic, log, consumers, sink, metrics, logger } = this.options
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
        if (signal.aborted) return false
      }
    }
    this.retryPause.reset()
    const ms = performance.now() - started
    const count = countOf(rows)
    metrics.rows.inc({ topic }, count)
    metrics.batchSeconds.observe({ topic }, ms / 1_000)
    logger.debug({ topic, ranges: note, rows: count, ms: Math.round(ms) }, 'usage rows written')
    if (this.buffered.size === 0) await this.commitEnds(ranges)
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
      this.buffered.delete(partition)
      this.converters.delete(partition)
      this.options.consumers.restart({ topic: this.options.topic, partition })
    }
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
