import { MUST_RUN_ALL } from './tools.js'

/*
 * The servers of the distributed engine that the suites share. Jest's global setup starts them and puts their addresses
 * into the environment. A server that could not be started has no address.
 */

/** Brokers of the single-node Kafka. */
export function kafkaBrokers(): string[] {
  return addressesIn('TEST_KAFKA_BROKERS')
}

/** Folder of that Kafka's partitions; null if a developer provides the Kafka and no folder. */
export function kafkaDataDir(): string | null {
  return addressesIn('TEST_KAFKA_DATA_DIR')[0] ?? null
}

/** The single-node Redis. */
export function redisUrl(): string {
  return addressesIn('TEST_REDIS_URL')[0] ?? ''
}

/** Nodes of the Redis Cluster. */
export function redisClusterUrls(): string[] {
  return addressesIn('TEST_REDIS_CLUSTER_URLS')
}

/** The ClickHouse, without a password. */
export function clickhouseUrl(): string {
  return addressesIn('TEST_CLICKHOUSE_URL')[0] ?? ''
}

/** REDIS_URL of Mayfly under test: the single node or, in Jest's project `redis-cluster`, the nodes of the Cluster. */
export function redisUrlUnderTest(): string {
  return process.env.TEST_REDIS === 'cluster' ? redisClusterUrls().join(',') : redisUrl()
}

/** `describe` if the servers run or no suite may be skipped, otherwise `describe.skip`. */
export function describeOn(
  ...servers: readonly ('kafka' | 'redis' | 'redis-cluster' | 'clickhouse')[]
): jest.Describe {
  const addresses = {
    kafka: kafkaBrokers,
    redis: () => [redisUrl()],
    'redis-cluster': redisClusterUrls,
    clickhouse: () => [clickhouseUrl()],
  }
  const areRunning = servers.every((server) => addresses[server]().some((address) => address !== ''))
  return areRunning || MUST_RUN_ALL ? describe : describe.skip
}

function addressesIn(variable: string): string[] {
  const text = process.env[variable] ?? ''
  return text === '' ? [] : text.split(',')
}
