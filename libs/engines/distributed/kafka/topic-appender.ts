import { setTimeout as pause } from 'node:timers/promises'
import kafkajs, { type Kafka, type Producer } from 'kafkajs'
import { Batcher } from '#libs/ports/event-log/batcher.js'
import { LogUnavailableError, type LogRecord, type Position } from '#libs/ports/event-log/event-log.js'
import { partitionCount, type TopicName, partitionOf } from '#libs/ports/event-log/topics.js'
import { asBuffer } from '#libs/ports/event-log/cloud-event.js'
import { messageOf } from '#libs/runtime/errors.js'
import { ANSWER_WITHIN_MS, within } from './kafka-client.js'
import { REQUEST_BYTES } from './kafka-topics.js'

interface Append {
  record: LogRecord
  partition: number
  /** The caller's promise was rejected: the record is not known to be durable. */
  isGivenUp: boolean
  /** Why it was not taken the last time that it was sent. */
  failure: unknown
}

interface Lane {
  batcher: Batcher<Append, Position>
  /** Appends that are not settled. */
  count: number
}

const BATCH = { maxItems: 2_000, maxBatchBytes: REQUEST_BYTES, maxQueuedBytes: 128 << 20, sizeOf }
const RECORD_OVERHEAD_BYTES = 64
const SEND_AGAIN_MS = 200
/** The brokers' own bound on copying to replicas. */
const REPLICATE_WITHIN_MS = 5_000
/** No request of kafkajs takes that long, all its timeouts together. */
const SEND_WITHIN_MS = 60_000

/**
 * Appends the records of one topic in the order in which they came: one request at a time is under way for a
 * partition, and it is sent again before any later one. So the order holds without kafkajs's idempotent producer,
 * which would have to retry for ever. What is sent again may be on the log twice, which readers must tolerate
 * anyway; the position given is that of the copy that was acknowledged.
 *
 * One request carries all partitions, and kafkajs reports its failure as a whole. If it fails, each partition's
 * records get a lane of their own, with what comes after them, until it is empty: a partition without a leader holds
 * up no other, and what the others took is not sent more than once again.
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

  /** Rejects with LogUnavailableError 10 s after the call at the latest; the record may be on the log then. */
  append(record: LogRecord): Promise<Position> {
    const { promise, resolve, reject } = Promise.withResolvers<Position>()
    const partition = partitionOf(record.key, partitionCount(this.topic, this.options.partitions))
    const append: Append = { record, partition, isGivenUp: false, failure: null }
    const timer = setTimeout(() => {
      append.isGivenUp = true
      const { failure: cause } = append
      const reason = cause === null ? 'it gave no answer' : messageOf(cause)
      const text = `${this.topic}/${partition} took no record within ${ANSWER_WITHIN_MS / 1_000} s: ${reason}`
      reject(new LogUnavailableError(text, { cause }))
    }, ANSWER_WITHIN_MS)
    this.batcher
      .add(append)
      .then(resolve, reject)
      .finally(() => clearTimeout(timer))
    return promise
  }

  /** Waits for the appends under way, and takes no other. */
  async close(): Promise<void> {
    await this.batcher.close()
    await Promise.all([...this.lanes.values()].map(({ batcher }) => batcher.close()))
  }

  /** Positions in the order of the appends, or the promises of them. */
  private async write(appends: readonly Append[]): Promise<(Position | Promise<Position> | undefined)[]> {
    const inTurn = appends.filter(({ partition, isGivenUp }) => !isGivenUp && !this.lanes.has(partition))
    let positions: ReadonlyMap<Append, Position> = new Map()
    try {
      if (inTurn.length > 0) positions = await this.send(inTurn)
    } catch (error) {
      // Each partition's lane tries it again.
      for (const append of inTurn) append.failure = error
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
      const wanted = appends.filter(({ isGivenUp }) => !isGivenUp)
      if (wanted.length === 0) throw new Error('given up before Kafka could be reached')
      try {
        const positions = await this.send(wanted)
        return appends.map((append) => positions.get(append))
      } catch (error) {
        if (isRefused(error)) throw error
        for (const append of wanted) append.failure = error
        await pause(SEND_AGAIN_MS)
      }
    }
  }

  private async send(appends: readonly Append[]): Promise<Map<Append, Position>> {
    const sent = this.producer.send({
      topic: this.options.topicPrefix + this.topic,
      acks: -1,
      timeout: REPLICATE_WITHIN_MS,
      messages: appends.map(({ record, partition }) => ({
        partition,
        key: record.key,
        headers: { ...record.headers },
        value: asBuffer(record.value),
      })),
    })
    const acknowledged = await within(SEND_WITHIN_MS, `Kafka took nothing for ${this.topic}`, sent)
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

/** A producer as the appenders need it: it sends to the partition that each record names, and does not retry. */
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

/** The brokers won't ever take it: it is too large, say. Whatever else fails may pass. */
function isRefused(error: unknown): boolean {
  for (let cause = error; cause instanceof Error; cause = cause.cause) {
    if (cause instanceof kafkajs.KafkaJSProtocolError && !cause.retriable) return true
  }
  return false
}

function sizeOf({ record: { key, headers, value } }: Append): number {
  let bytes = value.length + Buffer.byteLength(key) + RECORD_OVERHEAD_BYTES
  for (const [name, text] of Object.entries(headers)) bytes += name.length + Buffer.byteLength(text)
  return bytes
}
