import { setTimeout as pause } from 'node:timers/promises'
import kafkajs, { type Admin } from 'kafkajs'
import { messageOf } from '#libs/runtime/errors.js'
import { isDeadLetter, partitionCount, type TopicName } from '#libs/ports/event-log/topics.js'

/** Most bytes of the records of one request, but for a record that is larger and goes alone. */
export const REQUEST_BYTES = 4 << 20
/** What a record may have beside the mail itself: envelope, seal, attributes. */
const HEAD_ROOM_BYTES = 1 << 20

// Node doesn't find these names of the CommonJS module in a named import.
const { ConfigResourceTypes, ConfigSource } = kafkajs

const LOOK_EVERY_MS = 20

export interface TopicSettings {
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

interface WantedTopic {
  /** As the brokers know it. */
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
      ...(topic === 'inbox-keys' ? COMPACTED : kept(settings.retentionMs(topic))),
      // It bounds the batch of a partition, not the record.
      'max.message.bytes': String(
        // A dead letter is a record, however large, with what is said of it.
        Math.max(settings.maxMessageBytes, REQUEST_BYTES) + (isDeadLetter(topic) ? 2 : 1) * HEAD_ROOM_BYTES,
      ),
      // A sender's wrong clock can't end a record before its time, or keep it.
      'message.timestamp.type': 'LogAppendTime',
    },
  }
}

/** Holds one record for ever: which log this is. */
export function identityTopic({ topicPrefix, replication }: TopicSettings): WantedTopic {
  return {
    name: `${topicPrefix}log`,
    partitions: 1,
    replication,
    config: { ...durability(replication), ...READABLE, ...kept(null) },
  }
}

/**
 * kafkajs reads no batch in lz4, snappy or zstd, and such a one holds up all that the same broker is asked for: brokers
 * store none, whatever their own setting says and whoever sent it. Mail is compressed before it is sealed.
 */
const READABLE = { 'compression.type': 'uncompressed' } as const

function durability(replication: number) {
  return {
    'min.insync.replicas': replication >= 3 ? '2' : '1',
    'unclean.leader.election.enable': 'false',
  }
}

function kept(retentionMs: number | null) {
  return { 'cleanup.policy': 'delete', 'retention.ms': String(retentionMs ?? -1), 'retention.bytes': '-1' }
}

/**
 * How soon the brokers' disks lose a record of inbox-keys that another has replaced. A segment ends at the first
 * append after `segment.ms`, is compacted `max.compaction.lag.ms` after its first record at the latest, and the files
 * that held the old record go `file.delete.delay.ms` later: with an append to each partition every few minutes all of
 * it is over within the hour.
 */
const COMPACTED = {
  'cleanup.policy': 'compact',
  'segment.ms': '600000',
  'max.compaction.lag.ms': '600000',
  // A key in use that a late record replaced is appended again within seconds: until then it must not be compacted.
  'min.compaction.lag.ms': '60000',
  'min.cleanable.dirty.ratio': '0.01',
  'delete.retention.ms': '600000',
  'file.delete.delay.ms': '60000',
}

/**
 * Resolves once all topics are there with leaders and as they should be configured; what is there is left or brought
 * up to date, settings of the operator's own are kept. Rejects if one has another number of partitions, or
 * can't be had.
 */
export async function ensureTopics(
  admin: Admin,
  topics: readonly WantedTopic[],
  withinMs: number,
): Promise<void> {
  await createMissing(admin, topics)
  const found = await layoutsOf(admin, topics, Date.now() + withinMs)
  for (const { name, partitions } of topics) {
    const count = found.get(name)?.partitions
    if (count === partitions) continue
    throw new Error(
      `the topic ${name} has ${String(count)} partitions, not ${partitions}; another number would split an ` +
        `inbox's order: set the number back, or begin anew under another topic prefix`,
    )
  }
  // As many copies as a topic has: a process that is configured with fewer must not lower what the others rely on.
  const asTheyAre = topics.map(({ config, replication, ...topic }) => {
    const copies = found.get(topic.name)?.copies ?? replication
    return { ...topic, config: { ...config, ...durability(copies) } }
  })
  await alignConfigs(admin, asTheyAre)
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
    const refused = (error as { errors?: { type?: string; message: string; topic?: string }[] }).errors
    const failure = refused?.find(({ type }) => type !== 'TOPIC_ALREADY_EXISTS')
    if (refused !== undefined && failure === undefined) return
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
  /** Of the partition that has the fewest. */
  copies: number
}

async function layoutsOf(
  admin: Admin,
  topics: readonly WantedTopic[],
  deadline: number,
): Promise<Map<string, Layout>> {
  for (;;) {
    let fault: unknown = new Error('partitions of the topics have no leader: is a broker missing?')
    try {
      const found = await admin.fetchTopicMetadata({ topics: topics.map(({ name }) => name) })
      const areLed = found.topics.every(({ partitions }) => partitions.every(({ leader }) => leader >= 0))
      if (areLed && found.topics.length === topics.length) {
        return new Map(
          found.topics.map(({ name, partitions }) => {
            const copies = Math.min(...partitions.map(({ replicas }) => replicas.length))
            return [name, { partitions: partitions.length, copies }]
          }),
        )
      }
    } catch (error) {
      fault = error
    }
    if (Date.now() > deadline) throw fault
    await pause(LOOK_EVERY_MS)
  }
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
    // This request replaces all of a topic's own settings, and those of the operator are to stay.
    const own = configEntries.filter(({ configSource }) => configSource === ConfigSource.TOPIC_CONFIG)
    const kept = Object.fromEntries(own.map(({ configName, configValue }) => [configName, configValue]))
    const entries = Object.entries({ ...kept, ...wanted }).map(([name, value]) => ({ name, value }))
    return [{ type: ConfigResourceTypes.TOPIC, name: resourceName, configEntries: entries }]
  })
  if (changes.length > 0) await admin.alterConfigs({ validateOnly: false, resources: changes })
}
