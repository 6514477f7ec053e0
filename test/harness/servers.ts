import { MUST_RUN_ALL } from './tools.js'

/*
 * The servers of the distributed engine that the suites share. Jest's global setup starts them and leaves their
 * addresses in the environment; what could not be started has none.
 */

/** Brokers of a Kafka of one node. */
export function kafkaBrokers(): string[] {
  return addressesIn('TEST_KAFKA_BROKERS')
}

/** Folder of that Kafka's partitions; null if it is a developer's own and they don't say. */
export function kafkaDataDir(): string | null {
  return addressesIn('TEST_KAFKA_DATA_DIR')[0] ?? null
}

/** A Redis of one node. */
export function redisUrl(): string {
  return addressesIn('TEST_REDIS_URL')[0] ?? ''
}

/** Nodes of a Redis Cluster. */
export function redisClusterUrls(): string[] {
  return addressesIn('TEST_REDIS_CLUSTER_URLS')
}

/** A ClickHouse, without a password. */
export function clickhouseUrl(): string {
  return addressesIn('TEST_CLICKHOUSE_URL')[0] ?? ''
}

/** What Mayfly under test has as REDIS_URL: the one node, or for the project `redis-cluster` those of the Cluster. */
export function redisUrlUnderTest(): string {
  return process.env.TEST_REDIS === 'cluster' ? redisClusterUrls().join(',') : redisUrl()
}

/** `describe` where the servers are there or must be, else `describe.skip`. */
export function describeOn(
  ...servers: readonly ('kafka' | 'redis' | 'redis-cluster' | 'clickhouse')[]
): jest.Describe {
  const addresses = {
    kafka: kafkaBrokers,
    redis: () => [redisUrl()],
    'redis-cluster': redisClusterUrls,
    clickhouse: () => [clickhouseUrl()],
  }
  const areThere = servers.every((server) => addresses[server]().some((address) => address !== ''))
  return areThere || MUST_RUN_ALL ? describe : describe.skip
}

function addressesIn(variable: string): string[] {
  const text = process.env[variable] ?? ''
  return text === '' ? [] : text.split(',')
}
