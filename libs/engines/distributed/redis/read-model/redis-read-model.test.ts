import { openRedis, type RedisClient } from '#libs/engines/distributed/redis/client/redis-client.js'
import { describeOn, redisClusterUrls, redisUrl } from '#test/harness/servers.js'
import { describeProjectionStore } from '#libs/ports/read-model/projection-store.contract.js'
import { describeQueries } from '#libs/ports/read-model/queries.contract.js'
import { makeReadModel } from './redis-read-model-harness.contract.js'

describe.each([
  { server: 'redis' as const, urls: () => [redisUrl()] },
  { server: 'redis-cluster' as const, urls: redisClusterUrls },
])('$server', ({ server, urls }) => {
  describeOn(server)('stores the views', () => {
    let client: RedisClient

    beforeAll(async () => {
      client = await openRedis({ urls: urls(), name: 'mayfly-test', onError: () => undefined })
    })
    afterAll(() => client.disconnect())

    describeProjectionStore('Redis', () => makeReadModel(client))
    describeQueries('Redis', () => makeReadModel(client))
  })
})
