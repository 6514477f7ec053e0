import { randomUUID } from 'node:crypto'
import { openRedis, type RedisClient } from '#libs/engines/distributed/redis/client/redis-client.js'
import { mintId } from '#libs/domain/ids/mint.js'
import { startRedis } from '#test/harness/redis.js'
import { describeOn, redisClusterUrls, redisUrl } from '#test/harness/servers.js'
import { describeWith } from '#test/harness/tools.js'
import { ReadModelUnavailableError } from '#libs/ports/read-model/view-store.js'
import { describeKeyView } from './key-view.contract.js'
import { redisKeyView } from './redis-key-view.js'

describe.each([
  { server: 'redis' as const, urls: () => [redisUrl()] },
  { server: 'redis-cluster' as const, urls: redisClusterUrls },
])('$server', ({ server, urls }) => {
  describeOn(server)('stores inbox keys', () => {
    let client: RedisClient

    beforeAll(async () => {
      client = await openRedis({ urls: urls(), name: 'mayfly-test', onError: () => undefined })
    })
    afterAll(() => client.disconnect())

    describeKeyView('Redis', () => {
      const prefix = `test-${randomUUID()}.`
      return Promise.resolve({
        view: redisKeyView({ client, prefix }),
        async close() {
          for (const partition of [3, 4]) {
            await client.unlink(
              `${prefix}{p${partition}}:slot:inbox-keys`,
              `${prefix}{p${partition}}:inbox-keys`,
            )
          }
        },
      })
    })
  })
})

describeWith('redis-server')('inbox keys in a Redis whose memory is full', () => {
  it('are forgotten nevertheless', async () => {
    const server = await startRedis()
    const client = await openRedis({ urls: [server.url], name: 'mayfly-test', onError: () => undefined })
    const view = redisKeyView({ client, prefix: 'test.' })
    const [held, other] = [mintId('inb'), mintId('inb')]
    const key = { masterKeyId: 'master', wrapped: Buffer.from('key') }
    await view.take(0, held, key)
    await client.config('SET', 'maxmemory', '1mb')
    await expect(view.take(0, other, key)).rejects.toThrow(ReadModelUnavailableError)
    await view.forget(0, [held])
    expect((await view.find(0, [held])).entries).toEqual([{ state: 'forgotten' }])
    client.disconnect()
    await server.dispose()
  })
})

describeWith('redis-server')('inbox keys in a Redis that is down', () => {
  it('are unavailable', async () => {
    const server = await startRedis()
    const client = await openRedis({ urls: [server.url], name: 'mayfly-test', onError: () => undefined })
    const view = redisKeyView({ client, prefix: 'test.' })
    await view.forget(0, [mintId('inb')])
    await server.dispose()
    await expect(view.find(0, [])).rejects.toThrow(ReadModelUnavailableError)
    client.disconnect()
  })
})
