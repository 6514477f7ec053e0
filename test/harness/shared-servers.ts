import { installJars, KafkaJarsUnavailableError } from '#infra/kafka/jars.js'
import { startClickHouse } from './clickhouse.js'
import { startKafka } from './kafka.js'
import { startRedis, startRedisCluster } from './redis.js'
import { isAvailable, hasTool, MUST_RUN_ALL } from './tools.js'

/*
 * One Kafka, one Redis, one Redis Cluster and one ClickHouse for a run of Jest. If the environment already has an
 * address, the developer provides that server: it is neither started nor stopped here.
 */

type Variables = Record<string, string>

const disposals: (() => Promise<void>)[] = []
/** Run before the servers are stopped. */
const disposalsOfUsers: (() => Promise<void>)[] = []

/** Starts the servers that the machine can run and puts their addresses into the environment, which Jest's workers inherit. */
export async function startSharedServers(): Promise<void> {
  const starts = [
    unlessSet('TEST_KAFKA_BROKERS', sharedKafka),
    unlessSet('TEST_REDIS_URL', sharedRedis),
    unlessSet('TEST_REDIS_CLUSTER_URLS', sharedRedisCluster),
    unlessSet('TEST_CLICKHOUSE_URL', sharedClickHouse),
  ]
  for (const variables of await Promise.all(starts)) Object.assign(process.env, variables)
}

/** Installs Kafka's jars. Resolves with false, and prints the reason, if that fails and suites may be skipped. */
export async function installKafka(): Promise<boolean> {
  if (!isAvailable('kafka')) return false
  try {
    await installJars({ attempts: MUST_RUN_ALL ? 3 : 1 })
    return true
  } catch (error) {
    if (MUST_RUN_ALL || !(error instanceof KafkaJarsUnavailableError)) throw error
    process.stdout.write(`Skipping the suites that use Kafka: ${error.message}\n`)
    return false
  }
}

/** Runs `dispose` before the servers are stopped. */
export function deferToEnd(dispose: () => Promise<void>): void {
  disposalsOfUsers.push(dispose)
}

export async function endSharedServers(): Promise<void> {
  for (const group of [disposalsOfUsers, disposals]) {
    await Promise.all(group.splice(0).map((dispose) => dispose()))
  }
}

async function unlessSet(variable: string, start: () => Promise<Variables>): Promise<Variables> {
  return (process.env[variable] ?? '') === '' ? start() : {}
}

async function sharedKafka(): Promise<Variables> {
  if (!(await installKafka())) return {}
  const kafka = await startKafka()
  disposals.push(() => kafka.dispose())
  const [node] = kafka.nodes
  return { TEST_KAFKA_BROKERS: kafka.brokers.join(','), TEST_KAFKA_DATA_DIR: node?.dataDir ?? '' }
}

async function sharedRedis(): Promise<Variables> {
  if (!hasTool('redis-server')) return {}
  const redis = await startRedis()
  disposals.push(() => redis.dispose())
  return { TEST_REDIS_URL: redis.url }
}

async function sharedRedisCluster(): Promise<Variables> {
  if (!hasTool('redis-server') || !hasTool('redis-cli')) return {}
  const cluster = await startRedisCluster()
  disposals.push(() => cluster.dispose())
  return { TEST_REDIS_CLUSTER_URLS: cluster.urls.join(',') }
}

async function sharedClickHouse(): Promise<Variables> {
  if (!hasTool('clickhouse')) return {}
  const clickhouse = await startClickHouse()
  disposals.push(() => clickhouse.dispose())
  return { TEST_CLICKHOUSE_URL: clickhouse.url }
}
