import { Redis } from 'ioredis'
import { startRedis, type StartRedisOptions } from '#test/harness/redis.js'
import { describeWith } from '#test/harness/tools.js'

describeWith('redis-server')('a Redis', () => {
  const cases: { persistence: StartRedisOptions['persistence']; kept: string | null }[] = [
    { persistence: 'none', kept: null },
    { persistence: 'append-only', kept: 'value' },
    { persistence: 'dump', kept: 'value' },
  ]
  it.each(cases)('that is restarted with persistence $persistence has $kept', async (it) => {
    const server = await startRedis(it.persistence === undefined ? {} : { persistence: it.persistence })
    try {
      await onServer(server.url, (redis) => redis.set('key', 'value'))
      const { pid } = server
      await server.kill('SIGTERM')
      await server.restart()
      expect(server.pid).not.toBe(pid)
      expect(await onServer(server.url, (redis) => redis.get('key'))).toBe(it.kept)
    } finally {
      await server.dispose()
    }
  })

  it('that is paused continues after SIGCONT', async () => {
    const server = await startRedis()
    try {
      await server.kill('SIGSTOP')
      const answer = onServer(server.url, (redis) => redis.ping())
      await server.kill('SIGCONT')
      expect(await answer).toBe('PONG')
    } finally {
      await server.dispose()
    }
  })
})

async function onServer<Result>(url: string, work: (redis: Redis) => Promise<Result>): Promise<Result> {
  const redis = new Redis(url)
  try {
    return await work(redis)
  } finally {
    redis.disconnect()
  }
}
