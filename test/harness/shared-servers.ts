import { bringJars, NoKafkaJarsError } from '#infra/kafka/jars.js'
import { startClickHouse } from './clickhouse.js'
import { startKafka } from './kafka.js'
import { startRedis, startRedisCluster } from './redis.js'
import { canHave, hasTool, MUST_RUN_ALL } from './tools.js'

/*
 * One Kafka, one Redis, one Redis Cluster and one ClickHouse for a whole run of Jest. Addresses that are in the environment
 * already are a developer's own servers: nothing is started in their place, nor ended.
 */

type Variables = Record<string, string>

const disposals: (() => Promise<void>)[] = []
/** Of what runs on the servers. */
const users: (() => Promise<void>)[] = []

/** Starts what the machine can start and leaves the addresses in the environment, which Jest's workers inherit. */
export async function startSharedServers(): Promise<void> {
  const starts = [
    unlessSet('TEST_KAFKA_BROKERS', sharedKafka),
    unlessSet('TEST_REDIS_URL', sharedRedis),
    unlessSet('TEST_REDIS_CLUSTER_URLS', sharedRedisCluster),
    unlessSet('TEST_CLICKHOUSE_URL', sharedClickHouse),
  ]
  for (const variables of await Promise.all(starts)) Object.assign(process.env, variables)
}

/** Brings what a Kafka is started from, and resolves with whether it is there; says why where it is not. */
export async function bringKafka(): Promise<boolean> {
  if (!canHave('kafka')) return false
  try {
    await bringJars({ attempts: MUST_RUN_ALL ? 3 : 1 })
    return true
  } catch (error) {
    if (MUST_RUN_ALL || !(error instanceof NoKafkaJarsError)) throw error
    process.stdout.write(`Skipping the suites that use Kafka: ${error.message}\n`)
    return false
  }
}

/** To be done before the servers are ended. */
export function deferToEnd(dispose: () => Promise<void>): void {
  users.push(dispose)
}

export async function endSharedServers(): Promise<void> {
  for (const ends of [users, disposals]) await Promise.all(ends.splice(0).map((dispose) => dispose()))
}

async function unlessSet(variable: string, start: () => Promise<Variables>): Promise<Variables> {
  return (process.env[variable] ?? '') === '' ? start() : {}
}

async function sharedKafka(): Promise<Variables> {
  if (!(await bringKafka())) return {}
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
