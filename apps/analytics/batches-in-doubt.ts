import type { Logger } from 'pino'
import {
  type LogConsumers,
  type LogReader,
  type PartitionRange,
  MAX_NOTE_BYTES,
} from '#libs/ports/event-log/event-log.js'
import { SharedRun } from '#libs/runtime/timing/shared-run.js'
import type { EncodedRows } from '#libs/ports/usage/usage-rows.js'
import type { UsageBatch, UsageSink, UsageRange } from '#libs/ports/usage/usage-store.js'
import type { AnalyticsMetrics } from './analytics-metrics.js'
import { PartitionRows, type CountedTopic } from './event-rows.js'

export interface BatchesInDoubtOptions {
  topic: CountedTopic
  group: string
  log: LogReader & Pick<LogConsumers, 'committed'>
  sink: UsageSink
  metrics: AnalyticsMetrics
  logger: Logger
}

const LOOKED_UP_APART_MS = 250

/**
 * Where a topic's partitions go on, in the store and in the notes of the group's places: a note that begins where the
 * store stands is of a batch that may be written in part, and is written again.
 */
export class BatchesInDoubt {
  private readonly written: SharedRun<Map<number, number>>
  private readonly noted: SharedRun<{ partition: number; note: string }[]>
  /** Those that are being written again, by their notes. */
  private readonly repeats = new Map<string, Promise<void>>()

  constructor(private readonly options: BatchesInDoubtOptions) {
    const { topic, group, log, sink } = options
    this.written = new SharedRun(() => sink.writtenTo(log.logId, topic), LOOKED_UP_APART_MS)
    this.noted = new SharedRun(() => log.committed(group, topic), LOOKED_UP_APART_MS)
  }

  /** Resolves with the offset behind what is written of a partition, once nothing of it is in doubt. */
  async settle({ partition, first, end }: PartitionRange): Promise<number> {
    const writtenTo = (await this.written.get()).get(partition)
    const offset = Math.min(Math.max(writtenTo ?? first, first), end)
    const place = (await this.noted.get()).find((each) => each.partition === partition)
    const note = place?.note ?? ''
    const inDoubt = readRanges(note).find((each) => each.partition === partition && each.first === offset)
    if (inDoubt === undefined) return offset
    await this.repeat(note)
    return inDoubt.end
  }

  /** Makes the rows of a partition from an offset on: the same whoever does. */
  async rowsFrom(partition: number, offset: number): Promise<PartitionRows> {
    const { topic, log } = this.options
    const maker = new PartitionRows(topic, log.partitionCount(topic))
    const first = Math.max(offset - maker.lookBack, 0)
    for await (const records of log.read({ topic, partition, first, end: offset })) maker.skim(records)
    return maker
  }

  /** Once for all partitions that are in the batch, which are given at about the same time. */
  private repeat(note: string): Promise<void> {
    const underWay = this.repeats.get(note)
    if (underWay !== undefined) return underWay
    const repeat = this.writeAgain(note).finally(() => this.repeats.delete(note))
    this.repeats.set(note, repeat)
    return repeat
  }

  private async writeAgain(note: string): Promise<void> {
    const { topic, sink, metrics, logger } = this.options
    await sink.write(await this.readBatch(note))
    metrics.repeats.inc({ topic })
    logger.info({ topic, ranges: note }, 'a batch in doubt has been written again')
  }

  private async readBatch(note: string): Promise<UsageBatch> {
    const { topic, log } = this.options
    const ranges = readRanges(note)
    const rows: EncodedRows[] = []
    for (const range of ranges) {
      const maker = await this.rowsFrom(range.partition, range.first)
      for await (const records of log.read({ topic, ...range })) {
        const from = records[0]?.offset ?? range.first
        const next = (records.at(-1)?.offset ?? from) + 1
        const made = maker.take({ topic, partition: range.partition, from, next, records })
        rows.push(...made.rows())
      }
    }
    return { logId: log.logId, topic, ranges, rows }
  }
}

/*
 * What a batch in doubt is known by, as the note of a group's place: which ranges of the topic it holds, as
 * `<partition>:<first>-<end>`, parted by blanks.
 */

/** A partition of 6 digits and offsets of 15, with the blank behind. */
const MAX_BYTES = 6 + 1 + 15 + 1 + 15 + 1
/** As many ranges, of any offsets, as a note has room for. */
export const MAX_RANGES = Math.floor(MAX_NOTE_BYTES / MAX_BYTES)

export function writeRanges(ranges: readonly UsageRange[]): string {
  return ranges.map(({ partition, first, end }) => `${partition}:${first}-${end}`).join(' ')
}

/** None if the note is empty, or not one of these. */
export function readRanges(note: string): UsageRange[] {
  const found = note.split(' ').map((text) => /^(\d{1,6}):(\d{1,15})-(\d{1,15})$/.exec(text))
  if (found.includes(null)) return []
  return found.map((match) => {
    const [partition = 0, first = 0, end = 0] = match?.slice(1).map(Number) ?? []
    return { partition, first, end }
  })
}
