import { randomUUID } from 'node:crypto'
import { openRedis, type RedisClient } from '#libs/engines/distributed/redis/client/redis-client.js'
import { startRedis } from '#test/harness/redis.js'
import { describeOn, redisClusterUrls, redisUrl } from '#test/harness/servers.js'
import { describeWith } from '#test/harness/tools.js'
import { describeRateLimits } from '#libs/ports/rate-limit/rate-limits.contract.js'
import { RateLimitsUnavailableError, type RatePolicies } from '#libs/ports/rate-limit/rate-limits.js'
import { redisRateLimits } from './redis-rate-limits.js'

/** With long timeouts, because the suite requires exact counts even on a busy machine. */
const open = (urls: string[]) =>
  openRedis({ urls, name: 'mayfly-test', isForBulk: true, onError: () => undefined })

describe.each([
  { server: 'redis' as const, urls: () => [redisUrl()] },
  { server: 'redis-cluster' as const, urls: redisClusterUrls },
])('$server', ({ server, urls }) => {
  describeOn(server)('counts', () => {
    describeRateLimits('Redis', async () => {
      const clients = await Promise.all([open(urls()), open(urls())])
      const prefix = `test-${randomUUID()}.`
      const limitsOf = (client: RedisClient) => redisRateLimits({ client, prefix, timeoutMs: 10_000 })
      const [one, other] = clients
      return {
        one: limitsOf(one),
        other: limitsOf(other),
        close() {
          for (const client of clients) client.disconnect()
          return Promise.resolve()
        },
      }
    })
  })
})

describeWith('redis-server')('counts in a Redis', () => {
  const policies: RatePolicies = [
    { name: 'sustained', quota: 1, windowSeconds: 60 },
    { name: 'burst', quota: 1, windowSeconds: 600 },
  ]

  it('are stored under the prefix, each with an expiry', async () => {
    const server = await startRedis()
    const client: RedisClient = await open([server.url])
    const limits = redisRateLimits({ client, prefix: 'test.' })
    const group = { key: 'acc_1', policy: { name: 'account', quota: 9, windowSeconds: 60 } }
    await limits.consume('key_1', policies, group)
    await limits.consume('key_1', policies, group)
    const keys = await client.keys('*')
    expect(keys.toSorted()).toEqual([
      'test.rate-limit:account:{acc_1}',
      'test.rate-limit:burst:{acc_1}:key_1',
      'test.rate-limit:sustained:{acc_1}:key_1',
    ])
    for (const key of keys) expect(await client.pttl(key)).toBeGreaterThan(0)
    client.disconnect()
    await server.dispose()
  })

  it('are unavailable soon while Redis hangs or is down', async () => {
    const server = await startRedis()
    const client = await open([server.url])
    const limits = redisRateLimits({ client, prefix: 'test.' })
    await limits.consume('key_1', policies)
    await server.kill('SIGSTOP')
    const startedAt = performance.now()
    await expect(limits.consume('key_1', policies)).rejects.toThrow(RateLimitsUnavailableError)
    await expect(limits.peek('key_1', policies)).rejects.toThrow(RateLimitsUnavailableError)
    expect(performance.now() - startedAt).toBeLessThan(3_500)
    await server.kill('SIGKILL')
    await expect(limits.consume('key_1', policies)).rejects.toThrow(RateLimitsUnavailableError)
    client.disconnect()
    await server.dispose()
  })
})
