import kafkajs, { type Admin } from 'kafkajs'
import { messageOf } from '#libs/runtime/errors.js'
import { isDeadLetter, partitionCount, type TopicName } from '#libs/ports/event-log/topics.js'

/** The maximum bytes of the records of one request. A larger record is sent alone. */
export const REQUEST_BYTES = 4 << 20
/** The maximum bytes that a record has besides the mail: envelope, seal, attributes. */
const RECORD_OVERHEAD_BYTES = 1 << 20

// Node does not export these names of the CommonJS module, so they can't be imported by name.
const { ConfigResourceTypes, ConfigSource } = kafkajs

export interface TopicSettings {
  /** The prefix of the names of topics and consumer groups. */
  topicPrefix: string
  /** The number of partitions of a topic that has several. Opening fails if the log was created with another number. */
  partitions: number
  /** The number of copies of each record. With 3 or more, an append waits for 2. */
  replication: number
  /** The size limit of a mail. Records may be a little larger. */
  maxMessageBytes: number
  /** How long a record of a topic is kept at least; null if records are never removed. */
  retentionMs: (topic: TopicName) => number | null
}

interface WantedTopic {
  /** With the prefix. */
  name: string
  partitions: number
  replication: number
  config: Readonly<Record<string, string>>
}

export function wantedTopic(topic: TopicName, settings: TopicSettings): WantedTopic {
  return {
    name: settings.topicPrefix + topic,
    partitions: partitionCount(topic, settings.partitions),
    replication: settings.replication,
    config: {
      ...durability(settings.replication),
      ...READABLE,
      ...(topic === 'inbox-keys' ? COMPACTED : retention(settings.retentionMs(topic))),
      // Limits a batch of records, not a record.
      'max.message.bytes': String(
        // A dead letter contains a record of any size, and has attributes of its own.
        Math.max(settings.maxMessageBytes, REQUEST_BYTES) +
          (isDeadLetter(topic) ? 2 : 1) * RECORD_OVERHEAD_BYTES,
      ),
      // A wrong clock of a producer must not shorten or extend the retention of a record.
      'message.timestamp.type': 'LogAppendTime',
    },
  }
}

/** The topic whose first record identifies the log. */
export function identityTopic({ topicPrefix, replication }: TopicSettings): WantedTopic {
  return {
    name: `${topicPrefix}log`,
    partitions: 1,
    replication,
    config: { ...durability(replication), ...READABLE, ...retention(null) },
  }
}

/**
 * kafkajs can't read batches compressed with lz4, snappy or zstd, and such a batch blocks everything requested from the
 * same broker. With this setting brokers store no compressed batches, even if a producer sends them. Mail is compressed
 * before it is sealed.
 */
const READABLE = { 'compression.type': 'uncompressed' } as const

function durability(replication: number) {
  return {
    'min.insync.replicas': replication >= 3 ? '2' : '1',
    'unclean.leader.election.enable': 'false',
  }
}

function retention(retentionMs: number | null) {
  return { 'cleanup.policy': 'delete', 'retention.ms': String(retentionMs ?? -1), 'retention.bytes': '-1' }
}

/**
 * Determines how soon a replaced record of inbox-keys is removed from the brokers' disks. A segment ends at the first
 * append after `segment.ms`. It is compacted at most `max.compaction.lag.ms` after its first record, and its old files are
 * deleted `file.delete.delay.ms` later. With an append to each partition every few minutes, that takes less than an hour.
 */
const COMPACTED = {
  'cleanup.policy': 'compact',
  'segment.ms': '600000',
  'max.compaction.lag.ms': '600000',
  // A key in use that a late record has replaced is appended again within seconds. It must not be compacted before.
  'min.compaction.lag.ms': '60000',
  'min.cleanable.dirty.ratio': '0.01',
  'delete.retention.ms': '600000',
  'file.delete.delay.ms': '60000',
}

/**
 * Creates missing topics, and updates the configuration of existing ones. Other settings of the operator are kept. Rejects
 * if one has no leader yet, has another number of partitions, or can't be created.
 */
export async function ensureTopics(admin: Admin, topics: readonly WantedTopic[]): Promise<void> {
  await createMissing(admin, topics)
  const found = await layoutsOf(admin, topics)
  for (const { name, partitions } of topics) {
    const count = found.get(name)?.partitions
    if (count === partitions) continue
    throw new Error(
      `the topic ${name} has ${String(count)} partitions, not ${partitions}; another number would split an ` +
        `inbox's order: restore the number, or start an empty log with another topic prefix`,
    )
  }
  // Use the actual number of copies: a process configured with fewer must not weaken durability for the others.
  const withActualCopies = topics.map(({ config, replication, ...topic }) => {
    const copies = found.get(topic.name)?.copies ?? replication
    return { ...topic, config: { ...config, ...durability(copies) } }
  })
  await alignConfigs(admin, withActualCopies)
}

async function createMissing(admin: Admin, topics: readonly WantedTopic[]): Promise<void> {
  try {
    await admin.createTopics({
      waitForLeaders: false,
      topics: topics.map(({ name, partitions, replication, config }) => ({
        topic: name,
        numPartitions: partitions,
        replicationFactor: replication,
        configEntries: Object.entries(config).map(([key, value]) => ({ name: key, value })),
      })),
    })
  } catch (error) {
    const rejected = (error as { errors?: { type?: string; message: string; topic?: string }[] }).errors
    const failure = rejected?.find(({ type }) => type !== 'TOPIC_ALREADY_EXISTS')
    if (rejected !== undefined && failure === undefined) return
    if (failure?.type === 'INVALID_REPLICATION_FACTOR') {
      throw new Error(
        `Kafka has too few brokers for ${topics[0]?.replication ?? 0} copies of the topic ${failure.topic ?? ''}: ` +
          `start more brokers, or set KAFKA_REPLICATION to the number there are`,
        { cause: error },
      )
    }
    const reason = failure?.message ?? messageOf(error)
    throw new Error(`Kafka did not create the topic ${failure?.topic ?? ''}: ${reason}`, { cause: error })
  }
}

interface Layout {
  partitions: number
  /** The number of copies of the partition that has the fewest. */
  copies: number
}

async function layoutsOf(admin: Admin, topics: readonly WantedTopic[]): Promise<Map<string, Layout>> {
  const found = await admin.fetchTopicMetadata({ topics: topics.map(({ name }) => name) })
  const areLed = found.topics.every(({ partitions }) => partitions.every(({ leader }) => leader >= 0))
  if (!areLed || found.topics.length < topics.length) {
    const error = new Error('some partitions have no leader: is a broker down?')
    // The type of this error in Kafka's protocol.
    throw Object.assign(error, { type: 'LEADER_NOT_AVAILABLE' })
  }
  return new Map(
    found.topics.map(({ name, partitions }) => {
      const copies = Math.min(...partitions.map(({ replicas }) => replicas.length))
      return [name, { partitions: partitions.length, copies }]
    }),
  )
}

async function alignConfigs(
  admin: Admin,
  topics: readonly Pick<WantedTopic, 'name' | 'config'>[],
): Promise<void> {
  const { resources } = await admin.describeConfigs({
    includeSynonyms: false,
    resources: topics.map(({ name }) => ({ type: ConfigResourceTypes.TOPIC, name })),
  })
  const changes = resources.flatMap(({ resourceName, configEntries }) => {
    const wanted = topics.find(({ name }) => name === resourceName)?.config ?? {}
    const present = new Map(configEntries.map(({ configName, configValue }) => [configName, configValue]))
    if (Object.entries(wanted).every(([key, value]) => present.get(key) === value)) return []
    // The request replaces all settings of a topic, so it repeats those of the operator.
    const own = configEntries.filter(({ configSource }) => configSource === ConfigSource.TOPIC_CONFIG)
    const kept = Object.fromEntries(own.map(({ configName, configValue }) => [configName, configValue]))
    const entries = Object.entries({ ...kept, ...wanted }).map(([name, value]) => ({ name, value }))
    return [{ type: ConfigResourceTypes.TOPIC, name: resourceName, configEntries: entries }]
  })
  if (changes.length > 0) await admin.alterConfigs({ validateOnly: false, resources: changes })
}
