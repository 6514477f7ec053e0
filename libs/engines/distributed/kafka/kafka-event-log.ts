import {
  LogUnavailableError,
  type CommittedOffset,
  type Consumer,
  type ConsumerSpec,
  type EventLog,
  type PartitionRange,
  type StoredRecord,
} from '#libs/ports/event-log/event-log.js'
import { GroupConsumer } from '#libs/ports/event-log/group-consumer.js'
import { partitionCount, TOPICS, type TopicName } from '#libs/ports/event-log/topics.js'
import { SharedRun } from '#libs/runtime/timing.js'
import { GroupMember } from './group-member.js'
import { ANSWER_WITHIN_MS, makeKafka, within } from './kafka-client.js'
import { isOutOfRange, KafkaCluster, type Fetched } from './kafka-cluster.js'
import { disconnect, openLog, type Clients, type KafkaEventLogOptions } from './open-log.js'
import { PartitionFetcher } from './partition-fetcher.js'
import { TopicAppender } from './topic-appender.js'

/*
 * Relies on Kafka 3.7 or later, without automatic creation of topics, and on kafkajs 2.2.4. A record acknowledged with
 * acks=all is on min.insync.replicas brokers and below the high watermark. Consumers read up to the high watermark, which
 * is the end of a partition. The records of one request have consecutive offsets in a partition. A fetch may be smaller
 * than the largest record, because a broker returns the first batch whole (KIP-74).
 */

/** The minimum time between lookups of one kind, so that many callers do not load the brokers. */
const LOOKUPS_APART_MS = 5

/** Creates missing topics. Rejects as `openLog` does. */
export async function openKafkaEventLog(options: KafkaEventLogOptions): Promise<EventLog> {
  const { clients, logId } = await openLog(options)
  return kafkaEventLog(clients, logId, options)
}

function kafkaEventLog(clients: Clients, logId: string, options: KafkaEventLogOptions): EventLog {
  const { topicPrefix, onError } = options
  const consumers = new Set<Consumer>()
  const appenders = new Map(
    TOPICS.map((topic) => [topic, new TopicAppender(clients.producer, topic, options)] as const),
  )
  const lookups = new Map<TopicName, SharedRun<PartitionRange[]>>()
  let closing: Promise<void> | null = null

  return {
    logId,
    consumers,

    async append(topic, record) {
      const appender = appenders.get(topic)
      if (appender === undefined) throw new RangeError(`unknown topic ${topic}`)
      requireOpen()
      return appender.append(record)
    },

    consume,

    read: (range) => readRange(clients.cluster, topicPrefix + range.topic, range),

    partitionCount: (topic) => partitionCount(topic, options.partitions),

    async topology(topic) {
      requireOpen()
      const failure = `Kafka did not return the offsets of ${topic}`
      const ranges = await within(ANSWER_WITHIN_MS, failure, rangesOf(topic))
      return { logId, partitions: ranges.map((range) => ({ ...range })) }
    },

    async committed(group, topic) {
      requireOpen()
      const failure = `Kafka did not return the committed offsets of ${groupIdOf(group, topic)}`
      return within(ANSWER_WITHIN_MS, failure, offsetsOf(group, topic))
    },

    close() {
      closing ??= closeAll()
      return closing
    },
  }

  /**
   * kafkajs maintains the membership in the group and reports the assigned partitions, the fetcher fetches their records,
   * and GroupConsumer handles them. Resolves once the partitions of the first assignment have their start positions.
   * Rejects with LogUnavailableError if Kafka does not answer, or if the consumer is stopped first.
   */
  async function consume(spec: ConsumerSpec): Promise<Consumer> {
    requireOpen()
    const groupId = groupIdOf(spec.group, spec.topic)
    const topic = topicPrefix + spec.topic
    // Used by this consumer only: a request that waits for records blocks all others on its connection.
    const cluster = new KafkaCluster(makeKafka(options))
    const committed = new SharedRun(() => offsetsOf(spec.group, spec.topic), LOOKUPS_APART_MS)
    const fetcher = new PartitionFetcher(cluster, topic, spec.lingerMs ?? 0, (error) =>
      onError(error, `fetching of ${topic}`),
    )
    let memberId = ''
    const member = new GroupMember({
      kafka: () => makeKafka(options),
      groupId,
      topic,
      onAssigned(partitions, id) {
        // A member with a new id has left the group in between: its partitions may have been assigned to another.
        if (id !== memberId) consumer.revokeAll()
        memberId = id
        consumer.assign(partitions)
      },
      onLost: () => consumer.revokeAll(),
      onError: (error) => onError(error, `membership in the group ${groupId}`),
    })
    const consumer: GroupConsumer = new GroupConsumer(spec, {
      source: (partition) => ({
        range: () => rangeOf(spec.topic, partition),
        async committed() {
          const own = (await committed.get()).find((candidate) => candidate.partition === partition)
          return own?.offset ?? null
        },
        commit: (offset) => member.commit(partition, offset),
        next: (offset, signal) => fetcher.next(partition, offset, signal),
        close: () => fetcher.release(partition),
      }),
      async commit(offsets, requireAssigned) {
        const failure = `Kafka could not commit the offsets of ${groupId}`
        const membership = await within(ANSWER_WITHIN_MS, failure, member.membership)
        requireAssigned()
        await within(ANSWER_WITHIN_MS, failure, member.commitAs(membership, offsets))
      },
      async leave() {
        await member.stop()
        await fetcher.stop()
        consumers.delete(consumer)
      },
    })
    consumers.add(consumer)
    try {
      const failure = `Kafka did not return the leaders of ${topic}`
      await within(ANSWER_WITHIN_MS, failure, cluster.loadMetadata(topic))
      member.start()
      await consumer.whenStarted
      return consumer
    } catch (error) {
      await consumer.stop()
      throw error
    }
  }

  function requireOpen(): void {
    if (closing !== null) throw new LogUnavailableError('the event log is closed')
  }

  async function closeAll(): Promise<void> {
    await Promise.all([...appenders.values()].map((appender) => appender.close()))
    await Promise.all([...consumers].map((consumer) => consumer.stop()))
    await disconnect(clients)
  }

  function rangesOf(topic: TopicName): Promise<PartitionRange[]> {
    const lookup = lookups.get(topic) ?? new SharedRun(() => findRanges(topic), LOOKUPS_APART_MS)
    lookups.set(topic, lookup)
    return lookup.get()
  }

  async function findRanges(topic: TopicName): Promise<PartitionRange[]> {
    const found = await clients.cluster.offsets(topicPrefix + topic)
    return found.map((offsets) => ({ topic, ...offsets }))
  }

  async function rangeOf(topic: TopicName, partition: number): Promise<PartitionRange> {
    const range = (await rangesOf(topic)).find((candidate) => candidate.partition === partition)
    if (range === undefined) throw new RangeError(`${topic} has no partition ${partition}`)
    return range
  }

  function groupIdOf(group: string, topic: TopicName): string {
    return `${topicPrefix}${group}.${topic}`
  }

  async function offsetsOf(group: string, topic: TopicName): Promise<CommittedOffset[]> {
    const groupId = groupIdOf(group, topic)
    const found = await clients.admin.fetchOffsets({ groupId, topics: [topicPrefix + topic] })
    const offsets = found
      .flatMap(({ partitions }) => partitions)
      .map(({ partition, offset, metadata }) => ({
        ...{ topic, partition },
        ...{ offset: Number(offset), note: metadata ?? '' },
      }))
    // The offset is -1 if nothing was committed.
    return offsets.filter(({ offset }) => offset >= 0).sort((one, other) => one.partition - other.partition)
  }
}

const READ_WAIT_MS = 100
/** After this many empty responses in a row, compaction has left no record up to the end. */
const EMPTY_RESPONSES = 2

/**
 * The records of a range, in batches, without a consumer group. Retention may have removed the first records, and
 * compaction the last. Rejects with LogUnavailableError if Kafka returns no records for 10 s although it should have some.
 */
async function* readRange(
  cluster: KafkaCluster,
  topic: string,
  { partition, first, end }: Pick<PartitionRange, 'partition' | 'first' | 'end'>,
): AsyncIterable<StoredRecord[]> {
  let from = first
  let emptyResponses = 0
  let deadline = Date.now() + ANSWER_WITHIN_MS
  while (from < end) {
    const failure = `Kafka could not be read at ${topic}/${partition}/${from}`
    const fetched = await within(ANSWER_WITHIN_MS, failure, fetchOrSkip(cluster, topic, partition, from))
    const [answer] = fetched.partitions
    if (answer === undefined || answer.next === from) {
      const isAllRemoved = !fetched.isThrottled && answer !== undefined && answer.highWatermark >= end
      emptyResponses = isAllRemoved ? emptyResponses + 1 : 0
      if (emptyResponses === EMPTY_RESPONSES) return
      if (Date.now() > deadline) {
        throw new LogUnavailableError(
          `Kafka returns no records of ${topic}/${partition} from ${from} on, up to ${end}`,
        )
      }
      continue
    }
    const records = answer.records.filter(({ offset }) => offset < end)
    from = answer.next
    emptyResponses = 0
    if (records.length > 0) yield records
    deadline = Date.now() + ANSWER_WITHIN_MS
  }
}

/** Fetches records. If retention has removed the offset, the result has no records and continues at the first one left. */
async function fetchOrSkip(
  cluster: KafkaCluster,
  topic: string,
  partition: number,
  offset: number,
): Promise<Fetched> {
  try {
    return await cluster.fetchOne(topic, { partition, offset }, READ_WAIT_MS)
  } catch (error) {
    if (!isOutOfRange(error)) throw error
    const held = (await cluster.offsets(topic)).find((offsets) => offsets.partition === partition)
    if (held === undefined || held.first <= offset) throw error
    const skipped = { partition, from: offset, records: [], next: held.first, highWatermark: held.end }
    return { partitions: [skipped], isThrottled: false }
  }
}
