import { NamedError } from '#libs/runtime/errors.js'
import type { Decoded, Recorded } from './cloud-event.js'
import type { BatchOutcome, LogAppender, Partition, RecordBatch, StoredRecord } from './event-log.js'
import { deadLetterOf, partitionOf } from './topics.js'

/*
 * Decodes the events of a batch, and appends the records that can't be decoded to the dead letters.
 */

export interface DecodedBatch<Event, Recording = Recorded<Event>> {
  events: { offset: number; recorded: Recording }[]
  undecodable: { record: StoredRecord; reason: string }[]
  /** All records before this offset are among the events or undecodable. */
  next: number
  /** The handler's result once everything is done. */
  outcome: BatchOutcome
}

/** A record of a newer version stops its partition until that version is deployed. */
export class NewerSchemaError extends NamedError {
  constructor({ topic, partition }: RecordBatch, offset: number, type: string, version: number) {
    super(
      `${topic}/${partition}/${offset} holds ${type} in schema version ${version}, ` +
        `which this version does not know: deploy a newer one`,
    )
  }
}

interface BatchCodec<Event, Recording> {
  decode(record: StoredRecord): Decoded<Event, Recording>
  /** The record key of an event. */
  keyOf(event: Event): string
}

/** A reason may quote parts of a record that another program wrote. */
const MAX_REASON_CHARS = 500
const WRONG_KEY_REASON = 'its key or partition is not the one of its event'

/** Readers in one process share the objects of the latest records: the first one decodes them for all. */
const decodedRecords = new WeakMap<StoredRecord, unknown>()

/**
 * Decodes the events of a batch, in order, up to the first one that a newer version wrote. Throws NewerSchemaError if the
 * batch starts with that one. A record whose key or partition is not that of its event counts as undecodable, since its
 * order among the events of its subject is unknown. `partitions` is the number of partitions of the topic.
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
      decoded = decodeAndCheckKey(codec, record, batch.partition, partitions)
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

/** What decoding a record for a batch has given in this process; otherwise it is decoded now, for this caller alone. */
export function decodedBefore<Event, Recording extends { event: Event } = Recorded<Event>>(
  codec: BatchCodec<Event, Recording>,
  record: StoredRecord,
): Decoded<Event, Recording> {
  return (decodedRecords.get(record) as Decoded<Event, Recording> | undefined) ?? codec.decode(record)
}

function decodeAndCheckKey<Event, Recording extends { event: Event }>(
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
  const hasRightKey =
    record.key === codec.keyOf(decoded.recorded.event) && partitionOf(record.key, partitions) === partition
  return hasRightKey ? decoded : { kind: 'undecodable', reason: WRONG_KEY_REASON }
}

/**
 * Appends a copy of an undecodable record to `<topic>.dead-letter`, with the reason and its position. Resolves once the
 * copy is durable. Rejects as `append` does.
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
