import { randomUUID } from 'node:crypto'
import { ReadModelUnavailableError } from '#libs/ports/read-model/view-store.js'
import { openRedis, type RedisClient } from '#libs/engines/distributed/redis/client/redis-client.js'
import { idFromBytes } from '#libs/domain/ids/typeid.js'
import { describeOn, redisClusterUrls, redisUrl } from '#test/harness/servers.js'
import { describeKeyUse } from '#libs/ports/key-use/key-use.contract.js'
import { redisKeyUseStore } from './redis-key-use-store.js'

describe.each([
  { server: 'redis' as const, urls: () => [redisUrl()] },
  { server: 'redis-cluster' as const, urls: redisClusterUrls },
])('$server', ({ server, urls }) => {
  describeOn(server)('stores key use', () => {
    let client: RedisClient

    beforeAll(async () => {
      client = await openRedis({ urls: urls(), name: 'mayfly-test', onError: () => undefined })
    })
    afterAll(() => client.disconnect())

    describeKeyUse('Redis', () => {
      const prefix = `test-${randomUUID()}.`
      return {
        store: redisKeyUseStore(client, prefix),
        other: redisKeyUseStore(client, prefix),
        async close() {
          await client.unlink(`${prefix}key-use`)
        },
      }
    })
  })
})

describeOn('redis')('key use in an unavailable Redis', () => {
  it('rejects with ReadModelUnavailableError', async () => {
    const client = await openRedis({ urls: [redisUrl()], name: 'mayfly-test', onError: () => undefined })
    client.disconnect()
    const store = redisKeyUseStore(client, 'test.')
    const keyId = idFromBytes('key', Buffer.alloc(16, 1))
    await expect(store.get([keyId])).rejects.toThrow(ReadModelUnavailableError)
    await expect(store.put(new Map([[keyId, new Date()]]))).rejects.toThrow(ReadModelUnavailableError)
  })
})
