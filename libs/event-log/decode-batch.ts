import type { Decoded, Recorded } from './cloud-event.js'
import type { BatchOutcome, RecordBatch, StoredRecord } from './event-log.js'

export interface DecodedBatch<Event, Recording = Recorded<Event>> {
  events: { offset: number; recorded: Recording }[]
  /** Offsets of the batch up to, not including, this one are among the events, or undecodable. */
  next: number
  /** What to answer the log once all of it is done. */
  outcome: BatchOutcome
}

/** A record that a newer version wrote stops its partition until this one is deployed anew. */
export class NewerSchemaError extends Error {
  override readonly name = 'NewerSchemaError'

  constructor({ topic, partition }: RecordBatch, offset: number, type: string, version: number) {
    super(
      `${topic}/${partition}/${offset} holds ${type} in schema version ${version}, ` +
        `which this version does not know: deploy a newer one`,
    )
  }
}

/**
 * The events of a batch, in order, up to the first one from a newer version; rejects with NewerSchemaError where
 * that is the very first. Each record that can't be decoded is handed to `onUndecodable`, which is waited for.
 */
export async function decodeBatch<Event, Recording = Recorded<Event>>(
  codec: { decode(record: StoredRecord): Decoded<Event, Recording> },
  batch: RecordBatch,
  onUndecodable: (record: StoredRecord, reason: string) => Promise<void> | void,
): Promise<DecodedBatch<Event, Recording>> {
  const events: DecodedBatch<Event, Recording>['events'] = []
  const first = batch.records[0]?.offset ?? 0
  let next = first
  for (const record of batch.records) {
    const decoded = codec.decode(record)
    if (decoded.kind === 'newer') {
      if (next === first) throw new NewerSchemaError(batch, record.offset, decoded.type, decoded.version)
      return { events, next, outcome: { seekTo: next } }
    }
    if (decoded.kind === 'event') events.push({ offset: record.offset, recorded: decoded.recorded })
    else await onUndecodable(record, decoded.reason)
    next = record.offset + 1
  }
  return { events, next, outcome: 'done' }
}
