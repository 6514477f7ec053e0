import type { Decoded, Recorded } from './cloud-event.js'
import type { BatchOutcome, RecordBatch, StoredRecord } from './event-log.js'

export interface DecodedBatch<Event, Recording = Recorded<Event>> {
  events: { offset: number; recorded: Recording }[]
  undecodable: { record: StoredRecord; reason: string }[]
  /** What the batch holds of the offsets up to, not including, this one is among the events, or undecodable. */
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
 * The events of a batch, in order, up to the first one from a newer version; throws NewerSchemaError where the batch
 * begins with that.
 */
export function decodeBatch<Event, Recording = Recorded<Event>>(
  codec: { decode(record: StoredRecord): Decoded<Event, Recording> },
  batch: RecordBatch,
): DecodedBatch<Event, Recording> {
  const events: DecodedBatch<Event, Recording>['events'] = []
  const undecodable: DecodedBatch<Event, Recording>['undecodable'] = []
  for (const record of batch.records) {
    const { offset } = record
    const decoded = codec.decode(record)
    if (decoded.kind === 'event') {
      events.push({ offset, recorded: decoded.recorded })
    } else if (decoded.kind === 'newer') {
      if (offset === batch.from) throw new NewerSchemaError(batch, offset, decoded.type, decoded.version)
      return { events, undecodable, next: offset, outcome: { seekTo: offset } }
    } else {
      undecodable.push({ record, reason: decoded.reason })
    }
  }
  return { events, undecodable, next: batch.next, outcome: 'done' }
}
