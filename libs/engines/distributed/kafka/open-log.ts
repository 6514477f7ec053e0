import { randomUUID } from 'node:crypto'
import { setTimeout as pause } from 'node:timers/promises'
import type { Admin, Producer } from 'kafkajs'
import { LogUnavailableError } from '#libs/ports/event-log/event-log.js'
import { TOPICS } from '#libs/ports/event-log/topics.js'
import { causesOf, messageOf } from '#libs/runtime/errors.js'
import { tlsError } from '#libs/runtime/tls/tls-error.js'
import { makeKafka, within, type KafkaClientOptions } from './kafka-client.js'
import { KafkaCluster } from './kafka-cluster.js'
import { ensureTopics, identityTopic, wantedTopic, type TopicSettings } from './kafka-topics.js'
import { makeProducer } from './topic-appender.js'

export interface KafkaEventLogOptions extends KafkaClientOptions, TopicSettings {}

/** The connections of a log, except those of its consumers. */
export interface Clients {
  admin: Admin
  producer: Producer
  cluster: KafkaCluster
}

const OPEN_WITHIN_MS = 20_000
const SETTLED_WITHIN_MS = 15_000

/**
 * Connects, creates missing topics, and resolves with the id of the log. Rejects within 20 s, with what to do, if the
 * brokers can't be reached, reject a request, or have a log with another number of partitions.
 */
export async function openLog(options: KafkaEventLogOptions): Promise<{ clients: Clients; logId: string }> {
  const kafka = makeKafka(options)
  const clients = { admin: kafka.admin(), producer: makeProducer(kafka), cluster: new KafkaCluster(kafka) }
  const failure = `the event log on Kafka (${options.brokers.join(', ')}) can't be opened`
  try {
    return { clients, logId: await within(OPEN_WITHIN_MS, failure, connectAndFind(clients, options)) }
  } catch (error) {
    disconnect(clients).catch((reason: unknown) => options.onError(reason, 'disconnecting from Kafka'))
    // Report the cause: no append can be in doubt at the start.
    const cause = error instanceof LogUnavailableError ? error.cause : error
    throw new Error(`${failure}: ${connectionError(cause, options)}`, { cause: error })
  }
}

export async function disconnect({ admin, producer, cluster }: Clients): Promise<void> {
  await Promise.all([admin.disconnect(), producer.disconnect(), cluster.close()])
}

async function connectAndFind(clients: Clients, options: KafkaEventLogOptions): Promise<string> {
  await clients.admin.connect()
  await clients.producer.connect()
  // Another process may have just created the topics, and this broker may not know of them yet.
  return onceSettled(SETTLED_WITHIN_MS, () => findLog(clients, options))
}

/** Resolves with the log's id if all its topics exist and have leaders. Idempotent. */
async function findLog(clients: Clients, options: KafkaEventLogOptions): Promise<string> {
  const { admin, cluster } = clients
  const identity = identityTopic(options)
  await ensureTopics(admin, [identity])
  const { logId, partitions } = await findIdentity(clients, identity.name, options.partitions)
  if (partitions !== options.partitions) {
    throw new Error(
      `it has ${partitions} partitions, not ${options.partitions}; another number would split an inbox's order: ` +
        `set KAFKA_PARTITIONS=${partitions}, or start an empty log with another topic prefix`,
    )
  }
  const topics = TOPICS.map((topic) => wantedTopic(topic, options))
  await ensureTopics(admin, topics)
  // A leader may be elected before it serves requests, so wait until each answers.
  await Promise.all(topics.map(({ name }) => cluster.offsets(name)))
  return logId
}

/**
 * Resolves with the identity of the log: the first record of a topic that is never pruned. If there is none, each process
 * that starts appends one, and all processes then read the first.
 */
async function findIdentity({ cluster, producer }: Clients, topic: string, partitions: number) {
  const present = await readIdentity(cluster, topic)
  if (present !== null) return present
  const value = JSON.stringify({ log_id: randomUUID(), partitions })
  await producer.send({ topic, acks: -1, messages: [{ partition: 0, key: 'log', value }] })
  const written = await readIdentity(cluster, topic)
  if (written === null)
    throw new Error(`the topic ${topic} does not return the record that was appended to it`)
  return written
}

/** The id of the log, and the number of partitions of the topics that have several. */
async function readIdentity(
  cluster: KafkaCluster,
  topic: string,
): Promise<{ logId: string; partitions: number } | null> {
  const [{ first, end } = { first: 0, end: 0 }] = await cluster.offsets(topic)
  if (first === end) return null
  const { partitions } = await cluster.fetchOne(topic, { partition: 0, offset: first }, 1_000)
  const [record] = partitions.flatMap(({ records }) => records)
  if (record === undefined) throw new Error(`the topic ${topic} has records, but returns none`)
  try {
    const identity = JSON.parse(Buffer.from(record.value).toString()) as Record<string, unknown>
    const { log_id: logId, partitions: count } = identity
    if (typeof logId === 'string' && typeof count === 'number') return { logId, partitions: count }
  } catch {
    // Fall through to the error below.
  }
  throw new Error(
    `the first record of the topic ${topic} is not the identity of a log: does another application use the topic?`,
  )
}

/** Errors of brokers for a while after a topic was created or a broker was lost, until all brokers know. */
const SETTLING = new Set([
  'UNKNOWN_TOPIC_OR_PARTITION',
  'LEADER_NOT_AVAILABLE',
  'NOT_LEADER_FOR_PARTITION',
  'NOT_CONTROLLER',
])
const RETRY_MS = 50

/** Repeats `work` while brokers have not settled. After `withinMs` it rejects with the last error. */
export async function onceSettled<Result>(withinMs: number, work: () => Promise<Result>): Promise<Result> {
  const deadline = Date.now() + withinMs
  for (;;) {
    try {
      return await work()
    } catch (error) {
      if (!isSettling(error) || Date.now() > deadline) throw error
    }
    await pause(RETRY_MS)
  }
}

export function isSettling(error: unknown): boolean {
  return causesOf(error).some((cause) => 'type' in cause && SETTLING.has(String(cause.type)))
}

const TLS_SETTINGS = {
  address: 'KAFKA_BROKERS',
  ca: 'KAFKA_TLS_CA',
  own: { cert: 'KAFKA_TLS_CERT', key: 'KAFKA_TLS_KEY' },
} as const

type Credentials = Pick<KafkaClientOptions, 'sasl' | 'tls'>

/** Describes why the first connection to Kafka failed, with the setting to check if there is one. */
function connectionError(error: unknown, credentials: Credentials): string {
  const reason = messageOf(error).trim()
  const known = loginError(error, credentials) ?? tlsError(error, TLS_SETTINGS)
  if (known !== null) return known
  const authorization = chainOf(error).find(({ type }) => type?.endsWith('_AUTHORIZATION_FAILED') === true)
  if (authorization !== undefined) {
    const user = credentials.sasl === null ? 'this client' : `the user ${credentials.sasl.username}`
    return `${reason}: ${user} lacks a permission listed in docs/distributed.md (Kafka's ACLs)`
  }
  if (/closed connection|before secure TLS|ECONNRESET|socket hang up/i.test(reason)) {
    return `${reason}: ${closedConnectionHint(credentials)}`
  }
  return reason
}

function loginError(error: unknown, { sasl }: Credentials): string | null {
  const rejection = chainOf(error).find(({ name }) => name === 'KafkaJSSASLAuthenticationError')
  const types = chainOf(error).map(({ type }) => type)
  if (sasl === null) return null
  if (
    types.includes('UNSUPPORTED_SASL_MECHANISM') ||
    /not supported by the server/.test(rejection?.message ?? '')
  ) {
    return `the brokers do not support the SASL mechanism ${sasl.mechanism}: check KAFKA_SASL_MECHANISM`
  }
  if (types.includes('ILLEGAL_SASL_STATE')) {
    return 'the brokers do not support logins at this port: unset KAFKA_SASL_MECHANISM, or check KAFKA_BROKERS'
  }
  if (rejection === undefined) return null
  return (
    `the brokers reject the login of ${sasl.username} with ${sasl.mechanism}: ` +
    'check KAFKA_SASL_USERNAME and KAFKA_SASL_PASSWORD'
  )
}

/** Brokers close a connection without an error if the client uses another protocol than they expect. */
function closedConnectionHint({ sasl, tls }: Credentials): string {
  if (tls !== null) {
    const certificate = tls.cert === null ? '' : ', and does it accept KAFKA_TLS_CERT'
    return `does this port use TLS${certificate}? Check KAFKA_TLS and KAFKA_BROKERS`
  }
  const needsTls = 'does this port require TLS? Check KAFKA_TLS'
  return sasl === null ? `${needsTls}; or a login? Check KAFKA_SASL_MECHANISM` : needsTls
}

interface Failure {
  name: string
  message: string
  type: string | undefined
}

/** An error with its causes, and with the errors of an AggregateError. */
function chainOf(error: unknown): Failure[] {
  if (!(error instanceof Error)) return []
  const { name, message, cause } = error
  const type = 'type' in error ? String(error.type) : undefined
  const parts: unknown[] = 'errors' in error && Array.isArray(error.errors) ? error.errors : []
  return [{ name, message, type }, ...[cause, ...parts].flatMap(chainOf)]
}
