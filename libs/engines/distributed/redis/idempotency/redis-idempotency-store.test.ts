import { randomUUID } from 'node:crypto'
import { openRedis } from '#libs/engines/distributed/redis/client/redis-client.js'
import { startRedis } from '#test/harness/redis.js'
import { describeOn, redisClusterUrls, redisUrl } from '#test/harness/servers.js'
import { describeWith } from '#test/harness/tools.js'
import { describeIdempotencyStore } from '#libs/ports/idempotency/idempotency-store.contract.js'
import { IdempotencyUnavailableError } from '#libs/ports/idempotency/idempotency-store.js'
import { redisIdempotencyStore } from './redis-idempotency-store.js'

const open = (urls: string[]) => openRedis({ urls, name: 'mayfly-test', onError: () => undefined })
const now = () => new Date()

describe.each([
  { server: 'redis' as const, urls: () => [redisUrl()] },
  { server: 'redis-cluster' as const, urls: redisClusterUrls },
])('$server', ({ server, urls }) => {
  describeOn(server)('stores the records of requests', () => {
    describeIdempotencyStore('Redis', async (times) => {
      const clients = await Promise.all([open(urls()), open(urls())])
      const [one, other] = clients
      const options = { ...times, prefix: `test-${randomUUID()}.`, now }
      return {
        one: redisIdempotencyStore({ ...options, client: one }),
        other: redisIdempotencyStore({ ...options, client: other }),
        reopen: () => Promise.resolve(redisIdempotencyStore({ ...options, client: other })),
        close() {
          for (const client of clients) client.disconnect()
          return Promise.resolve()
        },
      }
    })
  })
})

describeWith('redis-server')('an idempotency store in a Redis', () => {
  it('stores each record under the prefix with an expiry, and rejects if Redis is full or unavailable', async () => {
    const server = await startRedis({ settings: { 'maxmemory-policy': 'noeviction' } })
    const client = await open([server.url])
    const store = redisIdempotencyStore({ client, prefix: 'test.', leaseMs: 1_000, keptMs: 60_000, now })
    const request = { id: 'one', fingerprint: 'this' }
    expect(await store.reserve(request)).toMatchObject({ state: 'run' })
    expect(await client.keys('*')).toEqual(['test.idempotency:one'])
    expect(await client.pttl('test.idempotency:one')).toBeGreaterThan(50_000)
    await client.config('SET', 'maxmemory', '1')
    const full = store.reserve({ ...request, id: 'another' })
    await expect(full).rejects.toThrow(IdempotencyUnavailableError)
    await server.kill('SIGKILL')
    await expect(store.reserve(request)).rejects.toThrow(IdempotencyUnavailableError)
    client.disconnect()
    await server.dispose()
  })
})
