import { setTimeout as pause } from 'node:timers/promises'
import kafkajs, { type Kafka, type Producer } from 'kafkajs'
import { Batcher } from '#libs/ports/event-log/batcher.js'
import { LogUnavailableError, type LogRecord, type Position } from '#libs/ports/event-log/event-log.js'
import { partitionCount, type TopicName, partitionOf } from '#libs/ports/event-log/topics.js'
import { asBuffer } from '#libs/ports/event-log/cloud-event.js'
import { messageOf, causesOf } from '#libs/runtime/errors.js'
import { ANSWER_WITHIN_MS, within } from './kafka-client.js'
import { REQUEST_BYTES } from './kafka-topics.js'

interface Append {
  record: LogRecord
  partition: number
  /** Whether the caller's promise was rejected, so that the record need not be sent any more. */
  hasTimedOut: boolean
  /** Why the last attempt to send it failed. */
  failure: unknown
}

interface Lane {
  batcher: Batcher<Append, Position>
  /** The number of appends that are not settled. */
  count: number
}

const BATCH = { maxItems: 2_000, maxBatchBytes: REQUEST_BYTES, maxQueuedBytes: 128 << 20, sizeOf }
const RECORD_OVERHEAD_BYTES = 64
const RETRY_MS = 200
/** The timeout of the brokers for replication. */
const REPLICATION_TIMEOUT_MS = 5_000
/** Longer than all timeouts of a request in kafkajs together. */
const SEND_TIMEOUT_MS = 60_000

/**
 * Appends the records of one topic in the order of the calls. Only one request is in progress for a partition, and it is
 * retried before the next one is sent. That keeps the order without kafkajs's idempotent producer, which would have to
 * retry for ever. A record that is sent again may be on the log twice, which readers must tolerate anyway. The position
 * returned is that of the copy that was acknowledged.
 *
 * A request contains records of all partitions, and kafkajs reports its failure as a whole. If it fails, the records of
 * each partition, and later ones, are sent in a separate lane until the lane is empty. Thus a partition without a leader
 * delays no other, and records that other partitions have appended are sent again at most once.
 */
export class TopicAppender {
  private readonly batcher: Batcher<Append, Position | Promise<Position>>
  private readonly lanes = new Map<number, Lane>()

  constructor(
    private readonly producer: Producer,
    private readonly topic: TopicName,
    private readonly options: { topicPrefix: string; partitions: number },
  ) {
    this.batcher = new Batcher({ ...BATCH, write: (appends) => this.write(appends) })
  }

  /** Rejects with LogUnavailableError after 10 s at the latest. The record may be on the log nevertheless. */
  append(record: LogRecord): Promise<Position> {
    const { promise, resolve, reject } = Promise.withResolvers<Position>()
    const partition = partitionOf(record.key, partitionCount(this.topic, this.options.partitions))
    const append: Append = { record, partition, hasTimedOut: false, failure: null }
    const timer = setTimeout(() => {
      append.hasTimedOut = true
      const { failure: cause } = append
      const reason = cause === null ? 'no answer' : messageOf(cause)
      const text = `no record was appended to ${this.topic}/${partition} within ${ANSWER_WITHIN_MS / 1_000} s: ${reason}`
      reject(new LogUnavailableError(text, { cause }))
    }, ANSWER_WITHIN_MS)
    this.batcher
      .add(append)
      .then(resolve, reject)
      .finally(() => clearTimeout(timer))
    return promise
  }

  async close(): Promise<void> {
    await this.batcher.close()
    await Promise.all([...this.lanes.values()].map(({ batcher }) => batcher.close()))
  }

  /** Returns the positions, or promises of them, in the order of the appends. */
  private async write(appends: readonly Append[]): Promise<(Position | Promise<Position> | undefined)[]> {
    const direct = appends.filter(({ partition, hasTimedOut }) => !hasTimedOut && !this.lanes.has(partition))
    let positions: ReadonlyMap<Append, Position> = new Map()
    try {
      if (direct.length > 0) positions = await this.send(direct)
    } catch (error) {
      // The lane of each partition retries it.
      for (const append of direct) append.failure = error
    }
    return appends.map((append) => positions.get(append) ?? this.inLane(append))
  }

  private inLane(append: Append): Promise<Position> {
    const { partition } = append
    const lane = this.lanes.get(partition) ?? this.openLane(partition)
    lane.count += 1
    return lane.batcher.add(append).finally(() => {
      lane.count -= 1
      if (lane.count === 0) this.lanes.delete(partition)
    })
  }

  private openLane(partition: number): Lane {
    const batcher = new Batcher({ ...BATCH, write: (appends: Append[]) => this.writeInLane(appends) })
    const lane = { batcher, count: 0 }
    this.lanes.set(partition, lane)
    return lane
  }

  private async writeInLane(appends: readonly Append[]): Promise<(Position | undefined)[]> {
    for (;;) {
      const pending = appends.filter(({ hasTimedOut }) => !hasTimedOut)
      if (pending.length === 0) throw new Error('timed out before Kafka could be reached')
      try {
        const positions = await this.send(pending)
        return appends.map((append) => positions.get(append))
      } catch (error) {
        if (isPermanent(error)) throw error
        for (const append of pending) append.failure = error
        await pause(RETRY_MS)
      }
    }
  }

  private async send(appends: readonly Append[]): Promise<Map<Append, Position>> {
    const sent = this.producer.send({
      topic: this.options.topicPrefix + this.topic,
      acks: -1,
      timeout: REPLICATION_TIMEOUT_MS,
      messages: appends.map(({ record, partition }) => ({
        partition,
        key: record.key,
        headers: { ...record.headers },
        value: asBuffer(record.value),
      })),
    })
    const acknowledged = await within(SEND_TIMEOUT_MS, `Kafka did not append to ${this.topic}`, sent)
    const next = new Map<number, number>()
    for (const { partition, errorCode, baseOffset } of acknowledged) {
      if (errorCode === 0 && baseOffset !== undefined) next.set(partition, Number(baseOffset))
    }
    const positions = new Map<Append, Position>()
    for (const append of appends) {
      const offset = next.get(append.partition)
      if (offset === undefined || offset < 0) continue
      positions.set(append, { topic: this.topic, partition: append.partition, offset })
      next.set(append.partition, offset + 1)
    }
    return positions
  }
}

/** Creates a producer for appenders. It sends each record to the partition that the record names, and does not retry. */
export function makeProducer(kafka: Kafka): Producer {
  return kafka.producer({
    allowAutoTopicCreation: false,
    idempotent: false,
    createPartitioner:
      () =>
      ({ message }) =>
        message.partition ?? 0,
    retry: { retries: 0 },
  })
}

/** Whether the brokers will always reject the request, for example because a record is too large. */
function isPermanent(error: unknown): boolean {
  return causesOf(error).some((cause) => cause instanceof kafkajs.KafkaJSProtocolError && !cause.retriable)
}

function sizeOf({ record: { key, headers, value } }: Append): number {
  let bytes = value.length + Buffer.byteLength(key) + RECORD_OVERHEAD_BYTES
  for (const [name, text] of Object.entries(headers)) bytes += name.length + Buffer.byteLength(text)
  return bytes
}
