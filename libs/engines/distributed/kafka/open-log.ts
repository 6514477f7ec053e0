import { randomUUID } from 'node:crypto'
import { setTimeout as pause } from 'node:timers/promises'
import type { Admin, Producer } from 'kafkajs'
import { LogUnavailableError } from '#libs/ports/event-log/event-log.js'
import { TOPICS } from '#libs/ports/event-log/topics.js'
import { connectionFault } from './connection-fault.js'
import { makeKafka, within, type KafkaClientOptions } from './kafka-client.js'
import { KafkaCluster } from './kafka-cluster.js'
import { ensureTopics, identityTopic, wantedTopic, type TopicSettings } from './kafka-topics.js'
import { makeProducer } from './topic-appender.js'

export interface KafkaEventLogOptions extends KafkaClientOptions, TopicSettings {}

/** The connections of a log, for all but its consumers. */
export interface Clients {
  admin: Admin
  producer: Producer
  cluster: KafkaCluster
}

const OPEN_WITHIN_MS = 20_000
const LEADERS_WITHIN_MS = 10_000
const SETTLED_WITHIN_MS = 8_000

/**
 * Connects, makes what is missing of the log, and resolves with its id. Rejects within 20 s, with what to do, if the
 * brokers can't be reached, don't give what is asked for, or hold a log with another number of partitions.
 */
export async function openLog(options: KafkaEventLogOptions): Promise<{ clients: Clients; logId: string }> {
  const kafka = makeKafka(options)
  const clients = { admin: kafka.admin(), producer: makeProducer(kafka), cluster: new KafkaCluster(kafka) }
  const what = `the event log on Kafka (${options.brokers.join(', ')}) can't be opened`
  try {
    return { clients, logId: await within(OPEN_WITHIN_MS, what, connectAndFind(clients, options)) }
  } catch (error) {
    disconnect(clients).catch((failure: unknown) => options.onError(failure, 'disconnecting from Kafka'))
    // Nothing has been appended that might be in doubt: it is a start that failed.
    const cause = error instanceof LogUnavailableError ? error.cause : error
    throw new Error(`${what}: ${connectionFault(cause, options)}`, { cause: error })
  }
}

export async function disconnect({ admin, producer, cluster }: Clients): Promise<void> {
  await Promise.all([admin.disconnect(), producer.disconnect(), cluster.close()])
}

async function connectAndFind(clients: Clients, options: KafkaEventLogOptions): Promise<string> {
  await clients.admin.connect()
  await clients.producer.connect()
  // Another process may just have made the topics, and this one asks a broker that has not heard of them.
  return onceSettled(SETTLED_WITHIN_MS, () => findLog(clients, options))
}

/** The log's id, once all its topics are there and served. Harmless to repeat. */
async function findLog(clients: Clients, options: KafkaEventLogOptions): Promise<string> {
  const { admin, cluster } = clients
  const identity = identityTopic(options)
  await ensureTopics(admin, [identity], LEADERS_WITHIN_MS)
  const { logId, partitions } = await findIdentity(clients, identity.name, options.partitions)
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

interface LogIdentity {
  logId: string
  /** Of the topics that have several. */
  partitions: number
}

/**
 * Which log this is: the first record of its topic, for ever. If there is none, each process that starts appends one,
 * and all then read which came first.
 */
async function findIdentity(
  { cluster, producer }: Clients,
  topic: string,
  partitions: number,
): Promise<LogIdentity> {
  const present = await readIdentity(cluster, topic)
  if (present !== null) return present
  const value = JSON.stringify({ log_id: randomUUID(), partitions })
  await producer.send({ topic, acks: -1, messages: [{ partition: 0, key: 'log', value }] })
  const written = await readIdentity(cluster, topic)
  if (written === null) throw new Error(`the topic ${topic} does not give back the record that it took`)
  return written
}

async function readIdentity(cluster: KafkaCluster, topic: string): Promise<LogIdentity | null> {
  const [{ first, end } = { first: 0, end: 0 }] = await cluster.offsets(topic)
  if (first === end) return null
  const { partitions } = await cluster.fetchOne(topic, { partition: 0, offset: first }, 1_000)
  const [record] = partitions.flatMap(({ records }) => records)
  if (record === undefined) throw new Error(`the topic ${topic} has records and gives none`)
  try {
    const identity = JSON.parse(Buffer.from(record.value).toString()) as Record<string, unknown>
    const { log_id: logId, partitions: count } = identity
    if (typeof logId === 'string' && typeof count === 'number') return { logId, partitions: count }
  } catch {
    // The error below says what it should have been.
  }
  throw new Error(`the first record of the topic ${topic} is not a log's identity: is the topic another's?`)
}

/** What brokers answer for a while after a topic was made or a broker lost: not all have heard of it yet. */
const SETTLING = new Set([
  'UNKNOWN_TOPIC_OR_PARTITION',
  'LEADER_NOT_AVAILABLE',
  'NOT_LEADER_FOR_PARTITION',
  'NOT_CONTROLLER',
])
const AGAIN_AFTER_MS = 100
const MAX_CAUSES = 5

/** Does what can be repeated until brokers agree on what there is; past the time it rejects with what they say. */
export async function onceSettled<Result>(withinMs: number, work: () => Promise<Result>): Promise<Result> {
  const deadline = Date.now() + withinMs
  for (;;) {
    try {
      return await work()
    } catch (error) {
      if (!isSettling(error) || Date.now() > deadline) throw error
    }
    await pause(AGAIN_AFTER_MS)
  }
}

/** Whether it, or what it came from, says that brokers do not agree yet. */
export function isSettling(error: unknown): boolean {
  let cause = error
  for (let depth = 0; depth < MAX_CAUSES && typeof cause === 'object' && cause !== null; depth += 1) {
    if ('type' in cause && typeof cause.type === 'string' && SETTLING.has(cause.type)) return true
    cause = 'cause' in cause ? cause.cause : undefined
  }
  return false
}
