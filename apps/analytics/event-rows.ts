import { inboxEventCodec, usageEventCodec, webhookEventCodec } from '#libs/ports/event-log/cloud-event.js'
import type { BatchOutcome, RecordBatch, StoredRecord } from '#libs/ports/event-log/event-log.js'
import { decodeBatch, type DecodedBatch } from '#libs/ports/event-log/batch-decoding.js'
import {
  type EncodedRows,
  encodeRows,
  inboxRow,
  type UsageRow,
  usageRows,
  webhookRow,
} from '#libs/ports/usage/usage-rows.js'
import type { UsageRange } from '#libs/ports/usage/usage-store.js'

/** The topics whose events become usage rows. */
export const COUNTED_TOPICS = ['usage-events', 'inbox-events', 'webhook-events'] as const
export type CountedTopic = (typeof COUNTED_TOPICS)[number]

export interface EventRows {
  /** Encodes the rows. Call it once: it remembers the events as counted. */
  rows: () => EncodedRows[]
  undecodable: { record: StoredRecord; reason: string }[]
  /** The offset after the last record. */
  next: number
  outcome: BatchOutcome
}

/**
 * How many event ids of each topic are remembered to drop duplicates. An appender that retries sends a record again
 * before later ones, so the copies of a record are less far apart. Mails are large, and few fit into a request.
 */
const RECENT_IDS: Readonly<Record<CountedTopic, number>> = {
  'usage-events': 2_000,
  'inbox-events': 100,
  'webhook-events': 500,
}

/**
 * Converts the records of one partition to rows, in order. An event that is on the log twice, because its appender
 * retried, counts once.
 */
export class RowConverter {
  /** The number of records before the start offset to remember, so that every process makes the same rows. */
  readonly rememberedRecords: number
  private readonly recent: RecentIds

  constructor(
    private readonly topic: CountedTopic,
    private readonly partitions: number,
  ) {
    this.rememberedRecords = RECENT_IDS[topic]
    this.recent = new RecentIds(this.rememberedRecords)
  }

  /** Throws NewerSchemaError, as decodeBatch does. */
  take(batch: RecordBatch): EventRows {
    switch (this.topic) {
      case 'usage-events':
        return this.rowsOf(decodeBatch(usageEventCodec, batch, this.partitions), batch, usageRows)
      case 'inbox-events':
        return this.rowsOf(decodeBatch(inboxEventCodec, batch, this.partitions), batch, inboxRow)
      case 'webhook-events':
        return this.rowsOf(decodeBatch(webhookEventCodec, batch, this.partitions), batch, webhookRow)
    }
  }

  /** Marks events as counted. */
  remember(records: readonly StoredRecord[]): void {
    for (const { headers } of records) this.recent.isNew(headers.ce_id ?? '')
  }

  private rowsOf<Event, Recording extends { id: string }>(
    { events, undecodable, next, outcome }: DecodedBatch<Event, Recording>,
    { partition }: RecordBatch,
    rowsOfEvent: (
      recorded: Recording,
      position: { partition: number; offset: number },
    ) => UsageRow | UsageRow[],
  ): EventRows {
    const rows = () =>
      encodeRows(
        events
          .filter(({ recorded }) => this.recent.isNew(recorded.id))
          .flatMap(({ offset, recorded }) => rowsOfEvent(recorded, { partition, offset })),
      )
    return { rows, undecodable, next, outcome }
  }
}

/**
 * The ids of the latest events of a partition. An appender that gets no response appends a record again, with the same
 * id and soon after the first.
 */
export class RecentIds {
  private latest = new Set<string>()
  private previous: ReadonlySet<string> = new Set()

  /** Remembers at least `minimum` ids, and up to twice as many. */
  constructor(private readonly minimum: number) {}

  /** Returns whether the id is new, and remembers it. */
  isNew(id: string): boolean {
    if (this.previous.has(id)) return false
    const { size } = this.latest
    if (this.latest.add(id).size === size) return false
    if (this.latest.size === this.minimum) {
      this.previous = this.latest
      this.latest = new Set()
    }
    return true
  }
}

interface BufferedRange extends UsageRange {
  rows: EncodedRows[]
}

/** Rows that wait to be written: a range without gaps for each partition. */
export class BufferedRows {
  private readonly partitions = new Map<number, BufferedRange>()
  /** When the oldest row was added, on the clock of `performance.now()`; null if there is none. */
  sinceMs: number | null = null
  count = 0

  /** Adds the rows of a range. Throws RangeError if it does not start where the partition's buffered range ends. */
  add({ partition, first, end }: UsageRange, rows: readonly EncodedRows[]): void {
    const before = this.partitions.get(partition)
    if (before === undefined) this.partitions.set(partition, { partition, first, end, rows: [...rows] })
    else if (before.end !== first) throw new RangeError(`${first} does not follow on ${before.end}`)
    else {
      before.end = end
      before.rows.push(...rows)
    }
    this.sinceMs ??= performance.now()
    this.count += countOf(rows)
  }

  drop(partition: number): void {
    this.count -= countOf(this.partitions.get(partition)?.rows ?? [])
    this.partitions.delete(partition)
    if (this.partitions.size === 0) this.sinceMs = null
  }

  /** Removes and returns the rows of at most that many partitions, in the order in which they were added. */
  take(maxPartitions: number): { ranges: UsageRange[]; rows: EncodedRows[] } {
    const taken = [...this.partitions.values()].slice(0, maxPartitions)
    for (const { partition } of taken) this.drop(partition)
    return {
      ranges: taken.map(({ partition, first, end }) => ({ partition, first, end })),
      rows: taken.flatMap(({ rows }) => rows),
    }
  }
}

export function countOf(rows: readonly EncodedRows[]): number {
  return rows.reduce((sum, { count }) => sum + count, 0)
}
