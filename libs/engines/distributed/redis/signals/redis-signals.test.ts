import { randomUUID } from 'node:crypto'
import { openRedis, type RedisClient } from '#libs/engines/distributed/redis/client/redis-client.js'
import { describeSignals } from '#libs/ports/signals/signals.contract.js'
import type { Signals } from '#libs/ports/signals/signals.js'
import { startRedis, type RedisServer } from '#test/harness/redis.js'
import { describeOn, redisClusterUrls, redisUrl } from '#test/harness/servers.js'
import { describeWith } from '#test/harness/tools.js'
import { until } from '#test/harness/until.js'
import { openRedisSignals } from './redis-signals.js'

const open = (urls: string[]) => openRedis({ urls, name: 'mayfly-test', onError: () => undefined })
const signalsOn = (client: RedisClient, prefix: string) =>
  openRedisSignals({ client, prefix, onError: () => undefined })

describe.each([
  { server: 'redis' as const, urls: () => [redisUrl()] },
  { server: 'redis-cluster' as const, urls: redisClusterUrls },
])('$server', ({ server, urls }) => {
  describeOn(server)('passes signals on', () => {
    describeSignals('Redis', async () => {
      const clients = await Promise.all([open(urls()), open(urls())])
      const prefix = `test-${randomUUID()}.`
      const [one, other] = await Promise.all([signalsOn(clients[0], prefix), signalsOn(clients[1], prefix)])
      return {
        one,
        other,
        async close() {
          await Promise.all([one.close(), other.close()])
          for (const client of clients) client.disconnect()
        },
      }
    })
  })
})

describeWith('redis-server')('a user of Redis without permission for channels', () => {
  it('is rejected at once, with the permission to add', async () => {
    const server = await startRedis()
    const admin = await open([server.url])
    await admin.call('ACL', 'SETUSER', 'mayfly', 'on', '>secret', '~*', '+@all')
    const client = await open([server.url.replace('//', '//mayfly:secret@')])
    await expect(signalsOn(client, 'test.')).rejects.toThrow(/NOPERM .*: allow its user &test\.\*$/)
    await admin.call('ACL', 'SETUSER', 'mayfly', '&test.*')
    await (await signalsOn(client, 'test.')).close()
    for (const each of [admin, client]) each.disconnect()
    await server.dispose()
  })
})

describeWith('redis-server')('signals over a Redis', () => {
  let server: RedisServer
  let client: RedisClient
  let signals: Signals

  beforeEach(async () => {
    server = await startRedis()
    client = await open([server.url])
    signals = await signalsOn(client, 'test.')
  })
  afterEach(async () => {
    await signals.close()
    client.disconnect()
    await server.dispose()
  })

  const subscribers = async () => {
    const [, count] = await client.pubsub('NUMSUB', 'test.moved')
    return Number(count)
  }

  it('need one subscription for a channel, until its last listener has ended', async () => {
    const ends = await Promise.all([1, 2, 3].map(() => signals.subscribe('moved', () => undefined)))
    expect(await subscribers()).toBe(1)
    ends[0]?.()
    ends[1]?.()
    expect(await subscribers()).toBe(1)
    ends[2]?.()
    await until('no subscription', async () => (await subscribers()) === 0)
  })

  it('use thousands of channels, also over a lost connection, and release them', async () => {
    const CHANNELS = 3_000
    const heard = new Set<number>()
    const subscribing = Array.from({ length: CHANNELS }, (_, n) =>
      signals.subscribe(`inbox:${n}`, () => heard.add(n)),
    )
    const ends = await Promise.all(subscribing)
    const publishAll = () => {
      for (let n = 0; n < CHANNELS; n += 1) signals.publish(`inbox:${n}`)
    }
    const reachesAll = () => until('every listener', () => heard.size === CHANNELS)
    publishAll()
    await reachesAll()
    heard.clear()
    await client.call('CLIENT', 'KILL', 'TYPE', 'pubsub')
    await reachesAll()
    heard.clear()
    publishAll()
    await reachesAll()
    const subscribed = async () =>
      ((await client.call('PUBSUB', 'CHANNELS', 'test.inbox:*')) as unknown[]).length
    expect(await subscribed()).toBe(CHANNELS)
    for (const end of ends) end()
    await until('no channel', async () => (await subscribed()) === 0)
  })

  it('call every listener after a lost connection, and are received again', async () => {
    let heard = 0
    await signals.subscribe('moved', () => (heard += 1))
    await client.call('CLIENT', 'KILL', 'TYPE', 'pubsub')
    await until('the call', () => heard === 1)
    signals.publish('moved')
    await until('the signal', () => heard === 2)
  })

  it('are received again after Redis was down, also by new subscribers', async () => {
    await server.kill('SIGKILL')
    const heard = new Set<string>()
    await signals.subscribe('moved', () => heard.add('moved'))
    signals.publish('moved')
    await server.restart()
    await until('the call', () => heard.has('moved'))
    heard.clear()
    await until('the signal', () => {
      signals.publish('moved')
      return heard.has('moved')
    })
  })

  it('do not block publishers, and block subscribers only briefly, while Redis hangs', async () => {
    await server.kill('SIGSTOP')
    let heard = 0
    const started = performance.now()
    signals.publish('moved')
    await signals.subscribe('moved', () => (heard += 1))
    expect(performance.now() - started).toBeLessThan(15_000)
    await server.kill('SIGCONT')
    await until('the call', () => heard > 0)
  })

  it('are not received once closed', async () => {
    let heard = 0
    await signals.subscribe('moved', () => (heard += 1))
    const other = await signalsOn(client, 'test.')
    const isPast = new Promise<void>((resolve) => void other.subscribe('past', () => resolve()))
    await other.subscribe('past', () => undefined)
    await signals.close()
    other.publish('moved')
    other.publish('past')
    await isPast
    expect(heard).toBe(0)
    await other.close()
  })
})
