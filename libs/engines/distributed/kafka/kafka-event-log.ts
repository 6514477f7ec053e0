import type { Admin, Kafka, Producer } from 'kafkajs'
import {
  LogUnavailableError,
  type CommittedOffset,
  type Consumer,
  type ConsumerSpec,
  type EventLog,
  type LogRecord,
  type PartitionRange,
  type Position,
  type StoredRecord,
  type Topology,
} from '#libs/ports/event-log/event-log.js'
import { SharedRun } from '#libs/runtime/timing/shared-run.js'
import { partitionCount, TOPICS, type SourceTopic, type TopicName } from '#libs/ports/event-log/topics.js'
import { connectionFault } from './connection-fault.js'
import {
  ANSWER_WITHIN_MS,
  LOOKUPS_APART_MS,
  makeKafka,
  within,
  type KafkaClientOptions,
} from './kafka-client.js'
import { KafkaCluster } from './kafka-cluster.js'
import { startKafkaConsumer } from './kafka-consumer.js'
import { readRange } from './kafka-reader.js'
import { ensureTopics, identityTopic, wantedTopic, type TopicSettings } from './kafka-topics.js'
import { findIdentity } from './log-identity.js'
import { onceSettled } from './settling.js'
import { makeProducer, TopicAppender } from './topic-appender.js'

/*
 * Relies on: Kafka 3.7 or later, without automatic creation of topics; kafkajs 2.2.4. What is acknowledged with
 * acks=all stands on min.insync.replicas brokers and below the high watermark, which bounds what consumers see and
 * what a topic's end is said to be. Offsets of one request's records in one partition follow each other. Sizes of
 * fetches need not match the largest record: a broker gives the first batch whole (KIP-74).
 */

export interface KafkaEventLogOptions extends KafkaClientOptions, TopicSettings {
  /** Begins the names of topics and of consumer groups. */
  topicPrefix: string
  /** Of inbox-events and inbox-keys; another number than at creation is refused. */
  partitions: number
  /** Copies of each record; with 3 or more an append waits for 2. */
  replication: number
  /** The largest mail; records may be a little larger. */
  maxMessageBytes: number
  /** How long a record of a topic is kept at least; null for ever. */
  retentionMs: (topic: TopicName) => number | null
}

const OPEN_WITHIN_MS = 20_000
const LEADERS_WITHIN_MS = 10_000
const SETTLED_WITHIN_MS = 8_000

interface Clients {
  kafka: Kafka
  admin: Admin
  producer: Producer
  cluster: KafkaCluster
}

export class KafkaEventLog implements EventLog {
  private readonly appenders: ReadonlyMap<TopicName, TopicAppender>
  private readonly lookups = new Map<TopicName, SharedRun<PartitionRange[]>>()
  private closing: Promise<void> | null = null
  readonly consumers = new Set<Consumer>()

  /**
   * Makes what is missing of the log. Rejects within 20 s, with what to do, if the brokers can't be reached, don't
   * give what is asked for, or hold a log with another number of partitions.
   */
  static async open(options: KafkaEventLogOptions): Promise<KafkaEventLog> {
    const kafka = makeKafka(options)
    const clients: Clients = {
      kafka,
      admin: kafka.admin(),
      producer: makeProducer(kafka),
      cluster: new KafkaCluster(kafka),
    }
    const what = `the event log on Kafka (${options.brokers.join(', ')}) can't be opened`
    try {
      return await within(OPEN_WITHIN_MS, what, KafkaEventLog.openOn(clients, options))
    } catch (error) {
      disconnect(clients).catch((failure: unknown) => options.onError(failure, 'disconnecting from Kafka'))
      // Nothing has been appended that might be in doubt: it is a start that failed.
      const cause = error instanceof LogUnavailableError ? error.cause : error
      throw new Error(`${what}: ${connectionFault(cause, options)}`, { cause: error })
    }
  }

  private static async openOn(clients: Clients, options: KafkaEventLogOptions): Promise<KafkaEventLog> {
    await clients.admin.connect()
    await clients.producer.connect()
    // Another process may just have made the topics, and this one asks a broker that has not heard of them.
    const logId = await onceSettled(SETTLED_WITHIN_MS, () => KafkaEventLog.findLog(clients, options))
    return new KafkaEventLog(clients, logId, options)
  }

  /** The log's id, once all its topics are there and served. Harmless to repeat. */
  private static async findLog(
    { admin, producer, cluster }: Clients,
    options: KafkaEventLogOptions,
  ): Promise<string> {
    const identity = identityTopic(options)
    await ensureTopics(admin, [identity], LEADERS_WITHIN_MS)
    const { logId, partitions } = await findIdentity(cluster, producer, identity.name, options.partitions)
    if (partitions !== options.partitions) {
      throw new Error(
        `it has ${partitions} partitions, not ${options.partitions}; another number would split an inbox's order: ` +
          `set KAFKA_PARTITIONS=${partitions}, or begin anew under another topic prefix`,
      )
    }
    const topics = TOPICS.map((topic) => wantedTopic(topic, options))
    await ensureTopics(admin, topics, LEADERS_WITHIN_MS)
    // A leader may be named before it serves; it answers once it does.
    await Promise.all(topics.map(({ name }) => cluster.offsets(name)))
    return logId
  }

  private constructor(
    private readonly clients: Clients,
    readonly logId: string,
    private readonly options: KafkaEventLogOptions,
  ) {
    this.appenders = new Map(
      TOPICS.map((topic) => [topic, new TopicAppender(clients.producer, topic, options)]),
    )
  }

  async append(topic: TopicName, record: LogRecord): Promise<Position> {
    const appender = this.appenders.get(topic)
    if (appender === undefined) throw new RangeError(`there is no topic ${topic}`)
    if (this.isClosed) throw new LogUnavailableError('the event log is closed')
    return appender.append(record)
  }

  async consume(spec: ConsumerSpec): Promise<Consumer> {
    if (this.isClosed) throw new LogUnavailableError('the event log is closed')
    const { topicPrefix, onError } = this.options
    return startKafkaConsumer({
      spec,
      groupId: this.groupIdOf(spec.group, spec.topic),
      topic: topicPrefix + spec.topic,
      kafka: () => makeKafka(this.options),
      cluster: new KafkaCluster(makeKafka(this.options)),
      ranges: () => this.rangesOf(spec.topic),
      committed: () => this.offsetsOf(spec.group, spec.topic),
      consumers: this.consumers,
      onError,
    })
  }

  read({ topic, partition, first, end }: PartitionRange): AsyncIterable<StoredRecord[]> {
    return readRange(this.clients.cluster, this.options.topicPrefix + topic, { partition, first, end })
  }

  partitionCount(topic: TopicName): number {
    return partitionCount(topic, this.options.partitions)
  }

  async topology(topic: TopicName): Promise<Topology> {
    if (this.isClosed) throw new LogUnavailableError('the event log is closed')
    const what = `Kafka could not be asked for the positions of ${topic}`
    const ranges = await within(ANSWER_WITHIN_MS, what, this.rangesOf(topic))
    return { logId: this.logId, partitions: ranges.map((range) => ({ ...range })) }
  }

  async committed(group: string, topic: SourceTopic): Promise<CommittedOffset[]> {
    if (this.isClosed) throw new LogUnavailableError('the event log is closed')
    const what = `Kafka could not be asked for the offsets of ${this.groupIdOf(group, topic)}`
    return within(ANSWER_WITHIN_MS, what, this.offsetsOf(group, topic))
  }

  close(): Promise<void> {
    this.closing ??= this.closeAll()
    return this.closing
  }

  private get isClosed(): boolean {
    return this.closing !== null
  }

  private async closeAll(): Promise<void> {
    await Promise.all([...this.appenders.values()].map((appender) => appender.close()))
    await Promise.all([...this.consumers].map((consumer) => consumer.stop()))
    await disconnect(this.clients)
  }

  private rangesOf(topic: TopicName): Promise<PartitionRange[]> {
    let lookup = this.lookups.get(topic)
    if (lookup === undefined) {
      const name = this.options.topicPrefix + topic
      const look = async () =>
        (await this.clients.cluster.offsets(name)).map((offsets) => ({ topic, ...offsets }))
      lookup = new SharedRun(look, LOOKUPS_APART_MS)
      this.lookups.set(topic, lookup)
    }
    return lookup.get()
  }

  private groupIdOf(group: string, topic: TopicName): string {
    return `${this.options.topicPrefix}${group}.${topic}`
  }

  private async offsetsOf(group: string, topic: TopicName): Promise<CommittedOffset[]> {
    const groupId = this.groupIdOf(group, topic)
    const topics = [this.options.topicPrefix + topic]
    const found = (await this.clients.admin.fetchOffsets({ groupId, topics })).flatMap(
      ({ partitions }) => partitions,
    )
    const offsets = found.map(({ partition, offset, metadata }) => ({
      topic,
      partition,
      offset: Number(offset),
      note: metadata ?? '',
    }))
    // Kafka gives -1 if nothing was committed.
    return offsets.filter(({ offset }) => offset >= 0).sort((one, other) => one.partition - other.partition)
  }
}

async function disconnect({ admin, producer, cluster }: Clients): Promise<void> {
  await Promise.all([admin.disconnect(), producer.disconnect(), cluster.close()])
}
