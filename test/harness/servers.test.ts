import { existsSync } from 'node:fs'
import { Redis } from 'ioredis'
import { Kafka, logLevel } from 'kafkajs'
import { queryRedis } from '#infra/redis/redis.js'
import {
  clickhouseUrl,
  describeOn,
  kafkaBrokers,
  kafkaDataDir,
  redisClusterUrls,
  redisUrl,
} from './servers.js'

describeOn('kafka')('the shared Kafka', () => {
  it('answers at its address, and creates no topic automatically', async () => {
    const kafka = new Kafka({ brokers: kafkaBrokers(), logLevel: logLevel.NOTHING, retry: { retries: 1 } })
    const admin = kafka.admin()
    await admin.connect()
    try {
      const { brokers } = await admin.describeCluster()
      expect(brokers.map(({ host, port }) => `${host}:${port}`)).toEqual(kafkaBrokers())
      await expect(admin.fetchTopicMetadata({ topics: ['never-created'] })).rejects.toMatchObject({
        type: 'UNKNOWN_TOPIC_OR_PARTITION',
      })
    } finally {
      await admin.disconnect()
    }
  })

  it('has its files in the given folder', () => {
    const dataDir = kafkaDataDir()
    expect(dataDir === null || existsSync(`${dataDir}/meta.properties`)).toBe(true)
  })
})

describeOn('redis')('the shared Redis', () => {
  it('answers at its address, and refuses writes instead of evicting keys', async () => {
    const redis = new Redis(redisUrl(), { lazyConnect: true })
    await redis.connect()
    expect(await redis.config('GET', 'maxmemory-policy')).toContain('noeviction')
    redis.disconnect()
  })
})

describeOn('redis-cluster')('the shared Redis Cluster', () => {
  it('is complete according to every node', async () => {
    const ports = redisClusterUrls().map((url) => Number(new URL(url).port))
    expect(ports.length).toBeGreaterThanOrEqual(3)
    for (const port of ports) expect(await queryRedis(port, 'CLUSTER INFO')).toContain('cluster_state:ok')
  })
})

describeOn('clickhouse')('the shared ClickHouse', () => {
  it('answers at its address without a password', async () => {
    const answer = await fetch(`${clickhouseUrl()}/?query=SELECT%20currentUser()`)
    expect(await answer.text()).toBe('default\n')
  })
})
