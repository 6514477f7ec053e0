import type { Decoded, Recorded } from './cloud-event.js'
import type { BatchOutcome, RecordBatch, StoredRecord } from './event-log.js'
import { partitionOf } from './partitioner.js'

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

interface BatchCodec<Event, Recording> {
  decode(record: StoredRecord): Decoded<Event, Recording>
  /** The key that an event's record has. */
  keyOf(event: Event): string
}

/** Whatever stands in a foreign record, what is said of it is short. */
const MOST_REASON_CHARS = 500
const MISPLACED = 'it stands under a key, or in a partition, that is not its own'

/**
 * The events of a batch of a topic with so many partitions, in order, up to the first one from a newer version; throws
 * NewerSchemaError if the batch begins with that. Undecodable is also what has no place here, under another key than
 * its event's or in another partition than its key's: its order among the events of its subject can't be told.
 */
export function decodeBatch<Event, Recording extends { event: Event } = Recorded<Event>>(
  codec: BatchCodec<Event, Recording>,
  batch: RecordBatch,
  partitions: number,
): DecodedBatch<Event, Recording> {
  const events: DecodedBatch<Event, Recording>['events'] = []
  const undecodable: DecodedBatch<Event, Recording>['undecodable'] = []
  const ownKeys = new Set<string>()
  for (const record of batch.records) {
    const { offset } = record
    const decoded = codec.decode(record)
    if (decoded.kind === 'newer') {
      if (offset === batch.from) throw new NewerSchemaError(batch, offset, decoded.type, decoded.version)
      return { events, undecodable, next: offset, outcome: { seekTo: offset } }
    }
    if (decoded.kind === 'undecodable') {
      undecodable.push({ record, reason: decoded.reason.slice(0, MOST_REASON_CHARS) })
    } else if (hasItsPlace(record.key, codec.keyOf(decoded.recorded.event))) {
      events.push({ offset, recorded: decoded.recorded })
    } else {
      undecodable.push({ record, reason: MISPLACED })
    }
  }
  return { events, undecodable, next: batch.next, outcome: 'done' }

  function hasItsPlace(key: string, own: string): boolean {
    if (key !== own) return false
    if (ownKeys.has(key)) return true
    if (partitionOf(key, partitions) !== batch.partition) return false
    ownKeys.add(key)
    return true
  }
}
