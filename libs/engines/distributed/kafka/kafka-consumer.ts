import type { Kafka } from 'kafkajs'
import type {
  CommittedOffset,
  Consumer,
  ConsumerSpec,
  PartitionRange,
} from '#libs/ports/event-log/event-log.js'
import { GroupConsumer } from '#libs/ports/event-log/group-consumer.js'
import type { PartitionSource } from '#libs/ports/event-log/partition-loop.js'
import { SharedRun } from '#libs/runtime/timing/shared-run.js'
import { GroupMember } from './group-member.js'
import type { KafkaCluster } from './kafka-cluster.js'
import { ANSWER_WITHIN_MS, LOOKUPS_APART_MS, within } from './kafka-client.js'
import { PartitionFetcher } from './partition-fetcher.js'

export interface KafkaConsumerOptions {
  spec: ConsumerSpec
  /** As the brokers know them. */
  groupId: string
  topic: string
  kafka: () => Kafka
  /** Used by this consumer alone: a request that waits for records holds up all others on its connection. */
  cluster: KafkaCluster
  ranges: () => Promise<PartitionRange[]>
  committed: () => Promise<CommittedOffset[]>
  /** The consumers that are running. */
  consumers: Set<Consumer>
  onError: (error: unknown, during: string) => void
}

/**
 * Starts a consumer on Kafka: kafkajs keeps the membership in the group and says which partitions are assigned, the
 * fetcher fetches their records, and GroupConsumer handles them. Resolves once the partitions of the first assignment have
 * their start positions. Rejects with LogUnavailableError if Kafka does not answer, or the consumer is stopped before.
 */
export async function startKafkaConsumer({
  spec,
  groupId,
  topic,
  kafka,
  cluster,
  ranges,
  consumers,
  onError,
  ...options
}: KafkaConsumerOptions): Promise<Consumer> {
  const committed = new SharedRun(options.committed, LOOKUPS_APART_MS)
  const fetcher = new PartitionFetcher(cluster, topic, (error) => onError(error, `fetching of ${topic}`))
  let memberId = ''
  const member = new GroupMember({
    kafka,
    groupId,
    topic,
    onAssigned(partitions, id) {
      // A member under a new name has been out of the group: its partitions may have been another's.
      if (id !== memberId) consumer.revokeAll()
      memberId = id
      consumer.assign(partitions)
    },
    onLost: () => consumer.revokeAll(),
    onMissed: () => consumer.reassign(),
    onError: (error) => onError(error, `membership in the group ${groupId}`),
  })
  const consumer: GroupConsumer = new GroupConsumer(spec, {
    source: sourceOf,
    async commit(offsets, requireAssigned) {
      const what = `Kafka could not commit the offsets of ${groupId}`
      const membership = await within(ANSWER_WITHIN_MS, what, member.membership)
      requireAssigned()
      await within(ANSWER_WITHIN_MS, what, member.commitAs(membership, offsets))
    },
    async leave() {
      await member.stop()
      await fetcher.stop()
      consumers.delete(consumer)
    },
  })
  consumers.add(consumer)
  try {
    const what = `Kafka could not be asked for the leaders of ${topic}`
    await within(ANSWER_WITHIN_MS, what, cluster.know(topic))
    member.start()
    await consumer.whenStarted
    return consumer
  } catch (error) {
    await consumer.stop()
    throw error
  }

  function sourceOf(partition: number): PartitionSource {
    return {
      async range() {
        const range = (await ranges()).find((candidate) => candidate.partition === partition)
        if (range === undefined) throw new RangeError(`${topic} has no partition ${partition}`)
        return range
      },
      async committed() {
        const own = (await committed.get()).find((candidate) => candidate.partition === partition)
        return own?.offset ?? null
      },
      commit: (offset) => member.commit(partition, offset),
      next: (offset, signal) => fetcher.next(partition, offset, signal),
      close: () => fetcher.release(partition),
    }
  }
}
