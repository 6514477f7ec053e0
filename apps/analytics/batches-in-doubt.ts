import type { Logger } from 'pino'
import {
  MAX_NOTE_BYTES,
  type LogConsumers,
  type LogReader,
  type PartitionRange,
} from '#libs/ports/event-log/event-log.js'
import type { EncodedRows } from '#libs/ports/usage/usage-rows.js'
import type { UsageBatch, UsageRange, UsageSink } from '#libs/ports/usage/usage-store.js'
import { SharedRun } from '#libs/runtime/timing.js'
import type { AnalyticsMetrics } from './analytics-metrics.js'
import { RowConverter, type CountedTopic } from './event-rows.js'

export interface BatchesInDoubtOptions {
  topic: CountedTopic
  group: string
  log: LogReader & Pick<LogConsumers, 'committed'>
  sink: UsageSink
  metrics: AnalyticsMetrics
  logger: Logger
}

const LOOKUP_INTERVAL_MS = 250

/**
 * Finds the start offsets of a topic's partitions, from the store and from the notes of the group's committed
 * offsets. A note whose range starts at the offset that the store has reached names a batch that may be written in
 * part: that batch is written again.
 */
export class BatchesInDoubt {
  private readonly written: SharedRun<Map<number, number>>
  private readonly noted: SharedRun<{ partition: number; note: string }[]>
  /** The batches that are being written again, by note. */
  private readonly repeats = new Map<string, Promise<void>>()

  constructor(private readonly options: BatchesInDoubtOptions) {
    const { topic, group, log, sink } = options
    this.written = new SharedRun(() => sink.writtenTo(log.logId, topic), LOOKUP_INTERVAL_MS)
    this.noted = new SharedRun(() => log.committed(group, topic), LOOKUP_INTERVAL_MS)
  }

  /** Resolves with the offset up to which a partition is written, after writing a batch in doubt again. */
  async settle({ partition, first, end }: PartitionRange): Promise<number> {
    const writtenTo = (await this.written.get()).get(partition)
    const offset = Math.min(Math.max(writtenTo ?? first, first), end)
    const committed = (await this.noted.get()).find((each) => each.partition === partition)
    const note = committed?.note ?? ''
    const inDoubt = readRanges(note).find((each) => each.partition === partition && each.first === offset)
    if (inDoubt === undefined) return offset
    await this.repeat(note)
    return inDoubt.end
  }

  /** Returns the converter for a partition's records from an offset. Every process makes the same rows. */
  async rowsFrom(partition: number, offset: number): Promise<RowConverter> {
    const { topic, log } = this.options
    const converter = new RowConverter(topic, log.partitionCount(topic))
    const first = Math.max(offset - converter.rememberedRecords, 0)
    for await (const records of log.read({ topic, partition, first, end: offset }))
      converter.remember(records)
    return converter
  }

  /** Writes a batch once for all its partitions, which are assigned at about the same time. */
  private repeat(note: string): Promise<void> {
    const running = this.repeats.get(note)
    if (running !== undefined) return running
    const repeat = this.rewrite(note).finally(() => this.repeats.delete(note))
    this.repeats.set(note, repeat)
    return repeat
  }

  private async rewrite(note: string): Promise<void> {
    const { topic, sink, metrics, logger } = this.options
    await sink.write(await this.readBatch(note))
    metrics.repeats.inc({ topic })
    logger.info({ topic, ranges: note }, 'a batch in doubt was written again')
  }

  private async readBatch(note: string): Promise<UsageBatch> {
    const { topic, log } = this.options
    const ranges = readRanges(note)
    const rows: EncodedRows[] = []
    for (const range of ranges) {
      const converter = await this.rowsFrom(range.partition, range.first)
      for await (const records of log.read({ topic, ...range })) {
        const from = records[0]?.offset ?? range.first
        const next = (records.at(-1)?.offset ?? from) + 1
        const converted = converter.take({ topic, partition: range.partition, from, next, records })
        rows.push(...converted.rows())
      }
    }
    return { logId: log.logId, topic, ranges, rows }
  }
}

/*
 * The note of a batch, committed with the group's offsets: the ranges of the topic in the batch, as
 * `<partition>:<first>-<end>`, separated by spaces.
 */

/** A partition of 6 digits, offsets of 15 digits, and a space. */
const MAX_RANGE_BYTES = 6 + 1 + 15 + 1 + 15 + 1
/** How many ranges always fit into a note. */
export const MAX_RANGES = Math.floor(MAX_NOTE_BYTES / MAX_RANGE_BYTES)

export function writeRanges(ranges: readonly UsageRange[]): string {
  return ranges.map(({ partition, first, end }) => `${partition}:${first}-${end}`).join(' ')
}

/** Returns no ranges if the note is empty or has another format. */
export function readRanges(note: string): UsageRange[] {
  const found = note.split(' ').map((text) => /^(\d{1,6}):(\d{1,15})-(\d{1,15})$/.exec(text))
  if (found.includes(null)) return []
  return found.map((match) => {
    const [partition = 0, first = 0, end = 0] = match?.slice(1).map(Number) ?? []
    return { partition, first, end }
  })
}
