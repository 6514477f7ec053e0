import type { Decoded, Recorded } from './cloud-event.js'
import type { BatchOutcome, RecordBatch, StoredRecord, LogAppender, Partition } from './event-log.js'
import { deadLetterOf, partitionOf } from './topics.js'

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

/** A reason may quote a record that something else wrote. */
const MAX_REASON_CHARS = 500
const MISPLACED = 'it stands under a key, or in a partition, that is not its own'

/** Consumers in one process may be given the same records: the first one decodes them for all. */
const decodedRecords = new WeakMap<StoredRecord, unknown>()

/**
 * The events of a batch, in order, up to the first one that a newer version wrote; throws NewerSchemaError if the batch
 * begins with that. A record under another key than its event's, or in another partition than its key's, counts as
 * undecodable: its order among the events of its subject is unknown. `partitions` is how many the topic has.
 */
export function decodeBatch<Event, Recording extends { event: Event } = Recorded<Event>>(
  codec: BatchCodec<Event, Recording>,
  batch: RecordBatch,
  partitions: number,
): DecodedBatch<Event, Recording> {
  const events: DecodedBatch<Event, Recording>['events'] = []
  const undecodable: DecodedBatch<Event, Recording>['undecodable'] = []
  for (const record of batch.records) {
    const { offset } = record
    let decoded = decodedRecords.get(record) as Decoded<Event, Recording> | undefined
    if (decoded === undefined) {
      decoded = decodeInPlace(codec, record, batch.partition, partitions)
      decodedRecords.set(record, decoded)
    }
    if (decoded.kind === 'newer') {
      if (offset === batch.from) throw new NewerSchemaError(batch, offset, decoded.type, decoded.version)
      return { events, undecodable, next: offset, outcome: { seekTo: offset } }
    }
    if (decoded.kind === 'event') events.push({ offset, recorded: decoded.recorded })
    else undecodable.push({ record, reason: decoded.reason })
  }
  return { events, undecodable, next: batch.next, outcome: 'done' }
}

function decodeInPlace<Event, Recording extends { event: Event }>(
  codec: BatchCodec<Event, Recording>,
  record: StoredRecord,
  partition: number,
  partitions: number,
): Decoded<Event, Recording> {
  const decoded = codec.decode(record)
  if (decoded.kind === 'undecodable') {
    return { kind: 'undecodable', reason: decoded.reason.slice(0, MAX_REASON_CHARS) }
  }
  if (decoded.kind === 'newer') return decoded
  const isInPlace =
    record.key === codec.keyOf(decoded.recorded.event) && partitionOf(record.key, partitions) === partition
  return isInPlace ? decoded : { kind: 'undecodable', reason: MISPLACED }
}

/**
 * Appends a copy of a record that can't be decoded to `<topic>.dead-letter`, with the reason and where it stands.
 * Resolves once the copy is durable. Rejects as `append` does.
 */
export async function appendDeadLetter(
  log: LogAppender,
  { topic, partition }: Partition,
  { key, headers, value, offset }: StoredRecord,
  reason: string,
): Promise<void> {
  const origin = `${topic}/${partition}/${offset}`
  const described = { ...headers, 'dead-letter-reason': reason, 'dead-letter-origin': origin }
  await log.append(deadLetterOf(topic), { key, value, headers: described })
}
