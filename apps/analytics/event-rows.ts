import { LRUCache } from 'lru-cache'
import { isInHistory } from '#libs/domain/inbox/events.js'
import { inboxEventCodec, usageEventCodec, webhookEventCodec } from '#libs/ports/event-log/cloud-event.js'
import type { RecordBatch, StoredRecord } from '#libs/ports/event-log/event-log.js'
import { decodeBatch, type DecodedBatch } from '#libs/ports/event-log/batch-decoding.js'
import {
  type EncodedRows,
  encodeRows,
  inboxRow,
  type UsageRow,
  usageRows,
  webhookRow,
} from '#libs/ports/usage/usage-rows.js'

/** The topics whose events become usage rows. */
export const COUNTED_TOPICS = ['usage-events', 'inbox-events', 'webhook-events'] as const
export type CountedTopic = (typeof COUNTED_TOPICS)[number]

export interface EventRows extends Pick<DecodedBatch<unknown>, 'undecodable' | 'next' | 'outcome'> {
  /** Encodes the rows. Call it once: it remembers the events as counted. */
  rows: () => EncodedRows[]
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
  private readonly recentIds: LRUCache<string, true>

  constructor(
    private readonly topic: CountedTopic,
    private readonly partitions: number,
  ) {
    this.rememberedRecords = RECENT_IDS[topic]
    this.recentIds = new LRUCache({ max: this.rememberedRecords })
  }

  /** Throws NewerSchemaError, as decodeBatch does. */
  take(batch: RecordBatch): EventRows {
    switch (this.topic) {
      case 'usage-events':
        return this.rowsOf(decodeBatch(usageEventCodec, batch, this.partitions), batch, usageRows)
      case 'inbox-events':
        return this.rowsOf(
          decodeBatch(inboxEventCodec, batch, this.partitions),
          batch,
          (recorded, position) => (isInHistory(recorded.event.type) ? inboxRow(recorded, position) : []),
        )
      case 'webhook-events':
        return this.rowsOf(decodeBatch(webhookEventCodec, batch, this.partitions), batch, webhookRow)
    }
  }

  /** Marks events as counted. */
  remember(records: readonly StoredRecord[]): void {
    for (const { headers } of records) this.isNew(headers.ce_id ?? '')
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
          .filter(({ recorded }) => this.isNew(recorded.id))
          .flatMap(({ offset, recorded }) => rowsOfEvent(recorded, { partition, offset })),
      )
    return { rows, undecodable, next, outcome }
  }

  /** Returns whether the event was not remembered, and remembers it. */
  private isNew(eventId: string): boolean {
    if (this.recentIds.has(eventId)) return false
    this.recentIds.set(eventId, true)
    return true
  }
}

export function countOf(rows: readonly EncodedRows[]): number {
  return rows.reduce((sum, { count }) => sum + count, 0)
}
