import { setImmediate as nextTurn } from 'node:timers/promises'
import type {
  BatchOutcome,
  LogAppender,
  PartitionRange,
  StartPosition,
  StoredRecord,
} from '#libs/ports/event-log/event-log.js'
import { appendDeadLetter } from '#libs/ports/event-log/partition-loop.js'
import type { RoleConsumers, ConsumedBatch } from '#libs/role/role-consumers.js'
import { Doorbell } from '#libs/ports/signals/signals.js'
import { GrowingPause, unlessAborted } from '#libs/runtime/timing/waiting.js'
import type { EncodedRows } from '#libs/ports/usage/usage-rows.js'
import type { UsageBatch, UsageRange } from '#libs/ports/usage/usage-store.js'
import { BatchesInDoubt, type BatchesInDoubtOptions, MAX_RANGES, writeRanges } from './batches-in-doubt.js'
import { type PartitionRows, countOf, GatheredRows } from './event-rows.js'

export interface TopicSinkOptions extends BatchesInDoubtOptions {
  log: BatchesInDoubtOptions['log'] & LogAppender
  consumers: Pick<RoleConsumers, 'commit' | 'restart'>
  /** Aborts ahead of `stop`: from then on nothing waits for a store that may be away. */
  closing: AbortSignal
}

/** How long rows are gathered: what is asked for is at most a few seconds behind. */
const GATHER_MS = 1_000
/** Written at once. */
const ENOUGH_ROWS = 100_000
/** Beyond it nothing more is taken from the log. */
const MAX_ROWS = 200_000
const AGAIN = { firstMs: 100, mostMs: 5_000 }

/**
 * Writes one topic's events to the store of usage figures, exactly once in effect.
 *
 * Where each partition is written to stands in the store, behind the rows. What can be in doubt is the batch that was
 * under way when a process died: rows of it may be there, and the place behind them not. So the ranges of a batch are
 * committed as notes of the group's places before it is written, which the log lets none do but the partitions' present
 * consumer; whoever is next finds the note that begins where the store stands, and writes exactly those ranges again,
 * whoever else has the other partitions by then, under the token that follows from the ranges. The store drops what it
 * has. A process that only seems dead does no harm: it can write what it has noted, and note nothing more.
 *
 * A store that was emptied or put back stands further behind, and is written anew from there.
 */
export class TopicSink {
  private readonly gathered = new GatheredRows()
  private readonly partitionRows = new Map<number, PartitionRows>()
  private readonly inDoubt: BatchesInDoubt
  private readonly bell = new Doorbell()
  private capacityFreed = Promise.withResolvers<undefined>()
  private readonly stopping = new AbortController()
  private readonly again = new GrowingPause(AGAIN)
  private loop: Promise<void> = Promise.resolve()
  /** The batch that is being written. */
  private writing: { ranges: readonly UsageRange[]; done: Promise<void> } | null = null

  constructor(private readonly options: TopicSinkOptions) {
    this.inDoubt = new BatchesInDoubt(options)
  }

  start(): void {
    this.loop = this.run()
  }

  /** The offset at which a partition continues, once what was in doubt of it is written. */
  async startAt(range: PartitionRange): Promise<StartPosition> {
    const { partition } = range
    const { closing } = this.options
    this.gathered.drop(partition)
    this.signalCapacity()
    // Nothing more is taken, so any offset will do.
    if (closing.aborted) return { offset: range.first }
    // The batch being written was this process's before: afterwards it is in the store, or noted.
    if (this.writing?.ranges.some((each) => each.partition === partition) === true) {
      await unlessAborted(this.writing.done, closing)
    }
    const offset = await this.inDoubt.settle(range)
    this.partitionRows.set(partition, await this.inDoubt.rowsFrom(partition, offset))
    return { offset }
  }

  /** Resolves once the batch is gathered. While too many rows are waiting to be written, it waits first. */
  async take(batch: ConsumedBatch): Promise<BatchOutcome> {
    const { partition, from, signal } = batch
    while (this.gathered.count >= MAX_ROWS) await unlessAborted(this.capacityFreed.promise, signal)
    // A batch's decoding is work of many milliseconds, and several partitions' batches may come at once.
    await nextTurn()
    signal.throwIfAborted()
    this.options.closing.throwIfAborted()
    const maker = this.partitionRows.get(partition)
    if (maker === undefined) return { seekTo: from }
    const { rows, undecodable, next, outcome } = maker.take(batch)
    await this.setAside(partition, undecodable)
    // Given up meanwhile: its start position is about to be asked for again.
    if (this.partitionRows.get(partition) !== maker) return { seekTo: from }
    // Not earlier: if setting aside fails, the batch comes again, and none of its events may be known by then.
    this.gathered.add({ partition, first: from, end: next }, rows())
    this.bell.ring()
    return outcome
  }

  /** Writes what is gathered, if that can be done at once, and resolves once nothing is under way. */
  async stop(): Promise<void> {
    this.stopping.abort()
    this.bell.ring()
    await this.loop
  }

  private async run(): Promise<void> {
    while (!this.isStopping()) {
      await this.untilDue()
      while (this.isDue()) {
        const isWritten = await this.writeGathered()
        if (!isWritten && this.isStopping()) return
      }
    }
  }

  private isDue(): boolean {
    const { sinceMs, count } = this.gathered
    if (sinceMs === null) return false
    return this.isStopping() || count >= ENOUGH_ROWS || performance.now() - sinceMs >= GATHER_MS
  }

  private isStopping(): boolean {
    return this.stopping.signal.aborted
  }

  private async untilDue(): Promise<void> {
    while (!this.isDue() && !this.isStopping()) {
      const { sinceMs } = this.gathered
      await this.bell.wait(
        sinceMs === null ? GATHER_MS : Math.max(sinceMs + GATHER_MS - performance.now(), 1),
      )
    }
  }

  /** Returns whether it is written; if not, the start positions of its partitions are asked for again. */
  private async writeGathered(): Promise<boolean> {
    const { ranges, rows } = this.gathered.take(MAX_RANGES)
    this.signalCapacity()
    const { promise, resolve } = Promise.withResolvers<undefined>()
    this.writing = { ranges, done: promise }
    try {
      const isWritten = await this.write(ranges, rows)
      // Whatever became of the batch: where it stands is to be looked up, ahead of the rows that were gathered since.
      if (!isWritten) this.giveUp(ranges)
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
      logger.warn({ err: error, topic, ranges: note }, 'a batch could not be noted: looked up again')
      await this.again.wait(signal)
      return false
    }
    const batch: UsageBatch = { logId: log.logId, topic, ranges, rows }
    for (;;) {
      try {
        await sink.write(batch)
        break
      } catch (error) {
        metrics.failures.inc({ topic })
        logger.error({ err: error, topic, ranges: note }, 'a batch could not be written: tried again')
        await this.again.wait(signal)
        if (this.isStopping()) return false
      }
    }
    this.again.reset()
    const ms = performance.now() - started
    const count = countOf(rows)
    metrics.rows.inc({ topic }, count)
    metrics.batchSeconds.observe({ topic }, ms / 1_000)
    logger.debug({ topic, ranges: note, rows: count, ms: Math.round(ms) }, 'usage figures written')
    if (this.gathered.sinceMs === null) await this.concludeNote(ranges)
    return true
  }

  /** For people who look at the group's offsets: nothing else uses them. */
  private async concludeNote(ranges: readonly UsageRange[]): Promise<void> {
    const { topic, consumers, logger } = this.options
    const behind = ranges.map(({ partition, end }) => ({ topic, partition, offset: end, note: '' }))
    await consumers
      .commit(topic, behind)
      .catch((error: unknown) =>
        logger.debug({ err: error, topic }, 'the offsets behind a batch could not be committed'),
      )
  }

  private giveUp(ranges: readonly UsageRange[]): void {
    for (const { partition } of ranges) {
      this.gathered.drop(partition)
      this.partitionRows.delete(partition)
      this.options.consumers.restart({ topic: this.options.topic, partition })
    }
    this.signalCapacity()
  }

  private signalCapacity(): void {
    this.capacityFreed.resolve(undefined)
    this.capacityFreed = Promise.withResolvers()
  }

  /** Only of usage-events: the projector sets aside those of the other topics. */
  private async setAside(
    partition: number,
    undecodable: readonly { record: StoredRecord; reason: string }[],
  ): Promise<void> {
    const { topic, log, logger, metrics } = this.options
    if (topic !== 'usage-events') return
    for (const { record, reason } of undecodable) {
      await appendDeadLetter(log, { topic, partition }, record, reason)
      metrics.deadLetters.inc({ topic })
      const place = { topic, partition, offset: record.offset }
      logger.error({ ...place, reason }, 'a record could not be decoded: set aside')
    }
  }
}
