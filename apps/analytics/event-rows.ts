import { decodeBatch, type DecodedBatch } from '#libs/ports/event-log/partition-loop.js'
import type { BatchOutcome, RecordBatch, StoredRecord } from '#libs/ports/event-log/event-log.js'
import { inboxEventCodec, usageEventCodec, webhookEventCodec } from '#libs/ports/event-log/cloud-event.js'
import {
  type EncodedRows,
  encodeRows,
  inboxRow,
  type UsageRow,
  usageRows,
  webhookRow,
} from '#libs/ports/usage/usage-rows.js'
import type { UsageRange } from '#libs/ports/usage/usage-store.js'

/** Topics that usage figures are made of. */
export const COUNTED_TOPICS = ['usage-events', 'inbox-events', 'webhook-events'] as const
export type CountedTopic = (typeof COUNTED_TOPICS)[number]

export interface EventRows {
  /** Makes them, once: what has been made counts as counted. */
  rows: () => EncodedRows[]
  undecodable: { record: StoredRecord; reason: string }[]
  /** The rows are those of the offsets up to, not including, this one. */
  next: number
  outcome: BatchOutcome
}

/**
 * Further than an appender's copies of one record are apart in a partition: it sends a request again ahead of what comes
 * later. Mails are large, and few go into a request.
 */
const RECENT: Readonly<Record<CountedTopic, number>> = {
  'usage-events': 2_000,
  'inbox-events': 100,
  'webhook-events': 500,
}

/**
 * Makes rows of one partition's records, one after the other. An event that stands on the log twice, since its appender
 * sent it again, counts once.
 */
export class PartitionRows {
  /** How far ahead of its first record a partition must have been read, for the same rows whoever begins there. */
  readonly lookBack: number
  private readonly recent: RecentIds

  constructor(
    private readonly topic: CountedTopic,
    private readonly partitions: number,
  ) {
    this.lookBack = RECENT[topic]
    this.recent = new RecentIds(this.lookBack)
  }

  /** Throws NewerSchemaError as decodeBatch does. */
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

  /** Notices events that are counted already. */
  skim(records: readonly StoredRecord[]): void {
    for (const { headers } of records) this.recent.isNew(headers.ce_id ?? '')
  }

  private rowsOf<Event, Recording extends { id: string }>(
    { events, undecodable, next, outcome }: DecodedBatch<Event, Recording>,
    { partition }: RecordBatch,
    rowsOfEvent: (recorded: Recording, place: { partition: number; offset: number }) => UsageRow | UsageRow[],
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
 * The ids of the last events of a partition: an appender that was not told what became of a record sends it again,
 * under the same id and soon behind the first.
 */
export class RecentIds {
  private latest = new Set<string>()
  private former: ReadonlySet<string> = new Set()

  /** Remembers `least` ids, and up to twice as many. */
  constructor(private readonly least: number) {}

  /** Whether the id is none of those that are remembered; it is one of them from then on. */
  isNew(id: string): boolean {
    if (this.former.has(id)) return false
    const { size } = this.latest
    if (this.latest.add(id).size === size) return false
    if (this.latest.size === this.least) {
      this.former = this.latest
      this.latest = new Set()
    }
    return true
  }
}

interface Gathered extends UsageRange {
  rows: EncodedRows[]
}

/** Rows that wait to be written, of ranges without a gap, by partition. */
export class GatheredRows {
  private readonly partitions = new Map<number, Gathered>()
  /** Since when the oldest of them waits, on the clock of `performance.now()`; null if none does. */
  sinceMs: number | null = null
  count = 0

  /** Adds what follows on what is gathered of the partition. */
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

  /** Takes out what has waited, of so many partitions at most; in the order of partitions, the same for the same. */
  take(mostPartitions: number): { ranges: UsageRange[]; rows: EncodedRows[] } {
    const taken = [...this.partitions.values()].slice(0, mostPartitions)
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
