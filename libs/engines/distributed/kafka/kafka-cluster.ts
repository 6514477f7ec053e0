import { setTimeout as pause } from 'node:timers/promises'
import {
  PartitionAssigners,
  type Cluster,
  type Consumer,
  type ConsumerConfig,
  type Kafka,
  type TopicOffsets,
} from 'kafkajs'
import {
  LogUnavailableError,
  type StoredRecord,
  type PartitionRange,
  type Position,
} from '#libs/ports/event-log/event-log.js'

/** Maximum bytes of one partition in a response. The first record batch is returned whole at any size (KIP-74). */
const PARTITION_FETCH_BYTES = 2 << 20
const FETCH_BYTES = 16 << 20
const RETRY_MS = 100
const MAX_ATTEMPTS = 4
/** The node id for a partition whose leader is not known. */
const NO_LEADER = '-1'

export type FetchPosition = Omit<Position, 'topic'>

/**
 * Creates a consumer that is not connected yet, and returns it with its cluster. kafkajs passes the cluster to partition
 * assigners. That is the only public way to send requests that its consumer does not send.
 */
export function makeConsumer(kafka: Kafka, config: ConsumerConfig): { consumer: Consumer; cluster: Cluster } {
  const clusters: Cluster[] = []
  const consumer = kafka.consumer({
    ...config,
    allowAutoTopicCreation: false,
    partitionAssigners: [
      (assigner) => {
        clusters.push(assigner.cluster)
        return PartitionAssigners.roundRobin(assigner)
      },
    ],
  })
  const [cluster] = clusters
  if (cluster === undefined) throw new Error('kafkajs passed no cluster to the partition assigner')
  return { consumer, cluster }
}

/** Reads offsets and records of partitions from their leaders, without a consumer group. */
export class KafkaCluster {
  private readonly cluster: Cluster
  /** Never joins a group. */
  private readonly consumer: Consumer
  private isClosed = false

  constructor(kafka: Kafka) {
    const { consumer, cluster } = makeConsumer(kafka, { groupId: 'never-joined', readUncommitted: true })
    this.consumer = consumer
    this.cluster = cluster
  }

  /** Resolves with the offsets of every partition, ordered by partition. Rejects if a leader does not answer. */
  async offsets(topic: string): Promise<Omit<PartitionRange, 'topic'>[]> {
    return this.withLeaders(async () => {
      await this.loadMetadata(topic)
      const partitions = this.cluster
        .findTopicPartitionMetadata(topic)
        .map(({ partitionId }) => ({ partition: partitionId }))
      const [firsts, ends] = await Promise.all(
        [true, false].map((fromBeginning) =>
          this.cluster.fetchTopicsOffset([{ topic, partitions, fromBeginning }]),
        ),
      )
      return partitions
        .map(({ partition }) => ({
          partition,
          first: offsetIn(firsts, partition),
          end: offsetIn(ends, partition),
        }))
        .sort((one, other) => one.partition - other.partition)
    })
  }

  /** Resolves once the leaders of the topic are known. */
  async loadMetadata(topic: string): Promise<void> {
    await this.connect()
    await this.cluster.addTargetTopic(topic)
    await this.cluster.refreshMetadataIfNecessary()
  }

  /** Groups positions by the node id of the partition's leader, according to the latest metadata. */
  byLeader<Item extends FetchPosition>(topic: string, positions: Iterable<Item>): Map<string, Item[]> {
    const known = this.cluster.findTopicPartitionMetadata(topic)
    const leaders = new Map(known.map(({ partitionId, leader }) => [partitionId, leader]))
    return Map.groupBy(positions, ({ partition }) => String(leaders.get(partition) ?? NO_LEADER))
  }

  /**
   * Fetches records of partitions that one broker leads. If there are none, the broker waits up to `maxWaitMs` for one. The
   * response may lack partitions without records.
   */
  async fetch(
    nodeId: string,
    topic: string,
    positions: readonly FetchPosition[],
    maxWaitMs: number,
  ): Promise<Fetched> {
    const broker = await this.cluster.findBroker({ nodeId })
    const partitions = positions.map(({ partition, offset }) => ({
      partition,
      fetchOffset: String(offset),
      maxBytes: PARTITION_FETCH_BYTES,
    }))
    const response = (await broker.fetch({
      maxWaitTime: maxWaitMs,
      minBytes: 1,
      maxBytes: FETCH_BYTES,
      isolationLevel: 0,
      topics: [{ topic, partitions }],
    })) as FetchResponse
    return readFetched(response, positions)
  }

  async fetchOne(topic: string, position: FetchPosition, maxWaitMs: number): Promise<Fetched> {
    return this.withLeaders(async () => {
      await this.loadMetadata(topic)
      const [nodeId = NO_LEADER] = this.byLeader(topic, [position]).keys()
      return this.fetch(nodeId, topic, [position], maxWaitMs)
    })
  }

  /** Must be called after a failed request. Reconnects, and updates which broker leads which partition. */
  async recover(error: unknown): Promise<void> {
    const { name, host, port } = error as { name?: unknown; host?: unknown; port?: unknown }
    if (name === 'KafkaJSConnectionClosedError' && typeof host === 'string' && typeof port === 'number') {
      this.cluster.removeBroker({ host, port })
    }
    await this.connect()
    await this.cluster.refreshMetadata()
  }

  async close(): Promise<void> {
    this.isClosed = true
    await this.consumer.disconnect()
  }

  private async connect(): Promise<void> {
    if (this.isClosed) throw new LogUnavailableError('the connection to Kafka has been closed')
    await this.cluster.connect()
  }

  private async withLeaders<Result>(request: () => Promise<Result>): Promise<Result> {
    for (let attempts = 1; ; attempts += 1) {
      try {
        return await request()
      } catch (error) {
        if (attempts === MAX_ATTEMPTS || isOutOfRange(error)) throw error
        await pause(RETRY_MS * attempts)
        await this.recover(error)
      }
    }
  }
}

export function isOutOfRange(error: unknown): boolean {
  return (error as { name?: unknown }).name === 'KafkaJSOffsetOutOfRange'
}

function offsetIn(topics: readonly TopicOffsets[] | undefined, partition: number): number {
  const found = topics?.[0]?.partitions.find((candidate) => candidate.partition === partition)
  if (found === undefined) throw new Error(`no leader returned the offsets of partition ${partition}`)
  return Number(found.offset)
}

/** The fields of a fetch response, as decoded by kafkajs (version 11 of the request), that are used. */
interface FetchResponse {
  clientSideThrottleTime?: number
  responses: readonly {
    partitions: readonly {
      partition: number
      highWatermark: string
      messages: readonly FetchedMessage[]
    }[]
  }[]
}

interface FetchedMessage {
  offset: string
  key: Buffer | null
  value: Buffer | null
  headers?: Record<string, unknown>
  isControlRecord?: boolean
  batchContext?: { firstOffset: string; lastOffsetDelta: number }
}

export interface Fetched {
  partitions: {
    partition: number
    /** The requested offset. */
    from: number
    records: StoredRecord[]
    /** The offset after the last record of the response, gaps included. */
    next: number
    /** The offset after the last record that consumers may read. */
    highWatermark: number
  }[]
  /** The broker returned nothing because the client exceeded its quota (KIP-219). */
  isThrottled: boolean
}

export function readFetched(response: FetchResponse, requested: readonly FetchPosition[]): Fetched {
  const partitions = response.responses
    .flatMap((topic) => topic.partitions)
    .map(({ partition, highWatermark, messages }) => {
      const from = requested.find((position) => position.partition === partition)?.offset ?? 0
      // A batch is returned whole, even if its first records are before the offset. Transactions leave control records.
      const records = messages
        .filter(({ offset, isControlRecord }) => Number(offset) >= from && isControlRecord !== true)
        .map(storedRecord)
      const next = Math.max(from, endOf(messages.at(-1)))
      return { partition, from, records, next, highWatermark: Number(highWatermark) }
    })
  return { partitions, isThrottled: (response.clientSideThrottleTime ?? 0) > 0 }
}

/** The offset after the batch of a message. Compaction keeps the extent of a batch even if it removes its last records. */
function endOf(last: FetchedMessage | undefined): number {
  if (last === undefined) return 0
  const { batchContext } = last
  if (batchContext === undefined) return Number(last.offset) + 1
  return Number(batchContext.firstOffset) + batchContext.lastOffsetDelta + 1
}

function storedRecord({ offset, key, value, headers = {} }: FetchedMessage): StoredRecord {
  return {
    offset: Number(offset),
    key: key === null ? '' : key.toString(),
    headers: Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, textOf(value)])),
    value: value ?? Buffer.alloc(0),
  }
}

/** The value of a header. If it occurs more than once, the last value is used. */
function textOf(header: unknown): string {
  const last: unknown = Array.isArray(header) ? header.at(-1) : header
  return Buffer.isBuffer(last) ? last.toString() : ''
}
