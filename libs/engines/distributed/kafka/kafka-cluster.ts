import { setTimeout as pause } from 'node:timers/promises'
import {
  PartitionAssigners,
  type Cluster,
  type Consumer,
  type ConsumerConfig,
  type Kafka,
  type TopicOffsets,
} from 'kafkajs'
import { LogUnavailableError, type StoredRecord } from '#libs/ports/event-log/event-log.js'

/** Records of one partition in one answer; one record batch comes whole, however large (KIP-74). */
const PARTITION_FETCH_BYTES = 2 << 20
const FETCH_BYTES = 16 << 20
const LOOK_AGAIN_MS = 100
const LOOKS = 4
/** The node id if the leader is not known. */
const NOBODY = '-1'

export interface Wanted {
  partition: number
  offset: number
}

interface Offsets {
  partition: number
  first: number
  end: number
}

/**
 * A consumer, which is not connected yet, and its cluster. kafkajs hands the cluster to partition assigners, which is
 * the one public way to requests that its consumer does not make.
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
  if (cluster === undefined) throw new Error('kafkajs gave its assigner no cluster')
  return { consumer, cluster }
}

/** Offsets and records of partitions, asked of their leaders without a consumer group. */
export class KafkaCluster {
  private readonly cluster: Cluster
  /** Never run. */
  private readonly consumer: Consumer
  private isClosed = false

  constructor(kafka: Kafka) {
    const { consumer, cluster } = makeConsumer(kafka, { groupId: 'never-joined', readUncommitted: true })
    this.consumer = consumer
    this.cluster = cluster
  }

  /** Resolves with what each partition holds, by partition; rejects if not all leaders answer. */
  async offsets(topic: string): Promise<Offsets[]> {
    return this.withLeaders(async () => {
      await this.know(topic)
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

  /** Resolves once the topic's leaders can be asked for. */
  async know(topic: string): Promise<void> {
    await this.connect()
    await this.cluster.addTargetTopic(topic)
    await this.cluster.refreshMetadataIfNecessary()
  }

  /** The partitions by the broker that leads them, as it was last heard. */
  byLeader<Item extends Wanted>(topic: string, wanted: Iterable<Item>): Map<string, Item[]> {
    const known = this.cluster.findTopicPartitionMetadata(topic)
    const leaders = new Map(known.map(({ partitionId, leader }) => [partitionId, leader]))
    return Map.groupBy(wanted, ({ partition }) => String(leaders.get(partition) ?? NOBODY))
  }

  /**
   * Records from the wanted offsets on, of partitions that one broker leads; without any the broker waits
   * up to `maxWaitMs` for one. An answer has no entry for a partition without records.
   */
  async fetch(nodeId: string, topic: string, wanted: readonly Wanted[], maxWaitMs: number): Promise<Fetched> {
    const broker = await this.cluster.findBroker({ nodeId })
    const partitions = wanted.map(({ partition, offset }) => ({
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
    return readFetched(response, wanted)
  }

  /** Records of one partition from an offset on; none if the end is reached. */
  async fetchOne(topic: string, wanted: Wanted, maxWaitMs: number): Promise<Fetched> {
    return this.withLeaders(async () => {
      await this.know(topic)
      const [nodeId = NOBODY] = this.byLeader(topic, [wanted]).keys()
      return this.fetch(nodeId, topic, [wanted], maxWaitMs)
    })
  }

  /** To be called after a failed request: asks again which broker leads what. */
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

  private async withLeaders<Result>(ask: () => Promise<Result>): Promise<Result> {
    for (let looks = 1; ; looks += 1) {
      try {
        return await ask()
      } catch (error) {
        if (looks === LOOKS || isOutOfRange(error)) throw error
        await pause(LOOK_AGAIN_MS * looks)
        await this.recover(error)
      }
    }
  }
}

/** The brokers do not hold the offset that was asked for. */
export function isOutOfRange(error: unknown): boolean {
  return (error as { name?: unknown }).name === 'KafkaJSOffsetOutOfRange'
}

function offsetIn(topics: readonly TopicOffsets[] | undefined, partition: number): number {
  const found = topics?.[0]?.partitions.find((candidate) => candidate.partition === partition)
  if (found === undefined) throw new Error(`no leader told the offsets of partition ${partition}`)
  return Number(found.offset)
}

/** What kafkajs decodes of an answer to a fetch (version 11 of the request), as far as it is used. */
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
    /** The offset that was asked for. */
    from: number
    records: StoredRecord[]
    /** The offset behind all that came, past gaps too. */
    next: number
    /** Behind the last offset that consumers may see. */
    highWatermark: number
  }[]
  /** The broker gave nothing because the client asked for too much (KIP-219). */
  isThrottled: boolean
}

export function readFetched(response: FetchResponse, wanted: readonly Wanted[]): Fetched {
  const partitions = response.responses
    .flatMap((topic) => topic.partitions)
    .map(({ partition, highWatermark, messages }) => {
      const from = wanted.find((candidate) => candidate.partition === partition)?.offset ?? 0
      // A batch comes whole, even if its first records lie before the offset; transactions leave markers.
      const records = messages
        .filter(({ offset, isControlRecord }) => Number(offset) >= from && isControlRecord !== true)
        .map(storedRecord)
      const next = Math.max(from, behind(messages.at(-1)))
      return { partition, from, records, next, highWatermark: Number(highWatermark) }
    })
  return { partitions, isThrottled: (response.clientSideThrottleTime ?? 0) > 0 }
}

/** Compaction keeps a batch's extent even if it removes its last records. */
function behind(last: FetchedMessage | undefined): number {
  if (last === undefined) return 0
  const { batchContext } = last
  if (batchContext === undefined) return Number(last.offset) + 1
  return Number(batchContext.firstOffset) + batchContext.lastOffsetDelta + 1
}

function storedRecord({ offset, key, value, headers = {} }: FetchedMessage): StoredRecord {
  return {
    offset: Number(offset),
    key: key === null ? '' : key.toString(),
    headers: Object.fromEntries(Object.entries(headers).map(([name, held]) => [name, textOf(held)])),
    value: value ?? Buffer.alloc(0),
  }
}

/** If a header occurs more than once, the last one counts. */
function textOf(header: unknown): string {
  const last: unknown = Array.isArray(header) ? header.at(-1) : header
  return Buffer.isBuffer(last) ? last.toString() : ''
}
