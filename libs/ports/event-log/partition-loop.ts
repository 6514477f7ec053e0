import { GrowingPause } from '#libs/runtime/timing/waiting.js'
import type {
  ConsumerSpec,
  Partition,
  PartitionRange,
  Position,
  RecordBatch,
  BatchOutcome,
  StoredRecord,
  LogAppender,
} from './event-log.js'
import type { Decoded, Recorded } from './cloud-event.js'
import { deadLetterOf, partitionOf } from './topics.js'

/** What an engine gives of one partition to the loop that handles it. */
export interface PartitionSource {
  range(): Promise<PartitionRange>
  /** The group's committed offset; null if there is none. */
  committed(): Promise<number | null>
  commit(offset: number): Promise<void>
  /**
   * Resolves with what follows an offset, once there is anything; with 'out-of-range' if the log does not hold the
   * offset; with null if the signal aborts first.
   */
  next(offset: number, signal: AbortSignal): Promise<FollowingRecords | 'out-of-range' | null>
  /** No more will be asked for. */
  close(): void
}

export type FollowingRecords = Pick<RecordBatch, 'next' | 'records'>

const RETRY = { firstMs: 100, mostMs: 5_000 }

/**
 * Handles one partition for as long as it is assigned to a consumer: asks for its start position, then handles batch
 * after batch, in order, and commits the offset behind each if the start position was the committed one. Whatever fails is
 * tried again after a growing pause.
 */
export class PartitionLoop {
  /** The offset behind all that was handled. */
  private offset = 0
  /** Fetched, and not handled yet. */
  private batch: RecordBatch | null = null
  private mustLocate = true
  private mustCommit = false
  private isRevoked = false
  private startsAtCommitted = false
  private hasStart = false
  private readonly started = Promise.withResolvers<undefined>()
  private readonly ending = new AbortController()
  /** Ends the wait for records. */
  private interrupting = new AbortController()
  private readonly retry = new GrowingPause(RETRY)

  /** Resolves once the start position is known, or the loop has ended before that. */
  readonly whenStarted: Promise<unknown> = this.started.promise
  /** Resolves once nothing of the partition is being handled, and nothing more will be. */
  readonly whenEnded: Promise<void>

  /** `after` is the end of the loop before this one, which may still be handling a batch of the same partition. */
  constructor(
    private readonly spec: Pick<ConsumerSpec, 'startAt' | 'handle' | 'onError'>,
    private readonly partition: Partition,
    private readonly source: PartitionSource,
    after: Promise<void> = Promise.resolve(),
  ) {
    this.whenEnded = after.then(() => this.run())
  }

  /** Null until the start position is known. */
  get position(): Position | null {
    const { topic, partition } = this.partition
    return this.hasStart ? { topic, partition, offset: this.offset } : null
  }

  /** Whether the consumer itself, not the group's committed offset, says where the partition begins. */
  get hasOwnStart(): boolean {
    return !this.startsAtCommitted
  }

  /** Asks for the start position again, after the batch under way. */
  restart(): void {
    this.mustLocate = true
    this.interrupting.abort()
  }

  /** Ends the loop after the batch under way, whose handler is told to finish. */
  end(): void {
    this.ending.abort()
    this.interrupting.abort()
  }

  /** Ends the loop and commits nothing more: another consumer may have the partition already. */
  revoke(): void {
    this.isRevoked = true
    this.end()
  }

  private async run(): Promise<void> {
    const { signal } = this.ending
    while (!signal.aborted) {
      try {
        await this.step(signal)
      } catch (error) {
        // A handler that was told to finish may give up: the records come to the partition's next consumer.
        if (this.hasEnded()) break
        this.spec.onError(error, this.partition)
        await this.retry.wait(signal)
      }
    }
    this.source.close()
    this.started.resolve(undefined)
  }

  private async step(signal: AbortSignal): Promise<void> {
    while (this.mustLocate) await this.locate()
    if (this.mustCommit) await this.commit()
    this.batch ??= await this.fetch(signal)
    if (this.batch === null) return
    const outcome = await this.spec.handle(this.batch, signal)
    this.offset = outcome === 'done' ? this.batch.next : outcome.seekTo
    this.batch = null
    this.mustCommit = this.startsAtCommitted
    if (this.mustCommit) await this.commit()
    this.retry.reset()
  }

  private async locate(): Promise<void> {
    this.mustLocate = false
    try {
      const range = await this.source.range()
      const start = await this.spec.startAt(range)
      this.startsAtCommitted = start === 'committed'
      this.offset =
        start === 'committed' ? await this.committedIn(range) : Math.max(start.offset, range.first)
    } catch (error) {
      this.mustLocate = true
      throw error
    }
    this.batch = null
    this.mustCommit = false
    this.hasStart = true
    this.started.resolve(undefined)
  }

  /** The first offset of the range if it does not hold the committed one. */
  private async committedIn({ first, end }: PartitionRange): Promise<number> {
    const committed = await this.source.committed()
    return committed !== null && committed >= first && committed <= end ? committed : first
  }

  /** Null if there is nothing to handle yet: the loop ends, or asks for its start position again. */
  private async fetch(signal: AbortSignal): Promise<RecordBatch | null> {
    if (this.hasEnded()) return null
    this.interrupting = new AbortController()
    const following = await this.source.next(this.offset, this.interrupting.signal)
    if (following === null || this.hasEnded()) return null
    if (following === 'out-of-range') {
      this.mustLocate = true
      await this.retry.wait(signal)
      return null
    }
    return { ...this.partition, from: this.offset, next: following.next, records: following.records }
  }

  private async commit(): Promise<void> {
    if (!this.isRevoked) await this.source.commit(this.offset)
    this.mustCommit = false
  }

  private hasEnded(): boolean {
    return this.ending.signal.aborted
  }
}

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
