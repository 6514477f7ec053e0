import { describeOn, redisClusterUrls, redisUrl } from '#test/harness/servers.js'
import { describeWith } from '#test/harness/tools.js'
import { startRedis, startRedisCluster, type RedisCluster, type RedisServer } from '#test/harness/redis.js'
import { until } from '#test/harness/until.js'
import { checkRedis, watchJoining } from './check-redis.js'
import { onInterruption, openRedis, type RedisClient } from './redis-client.js'

const opened: RedisClient[] = []
const servers: RedisServer[] = []

async function open(...urls: string[]): Promise<RedisClient> {
  const client = await openRedis({ urls, name: 'mayfly-test', onError: () => undefined })
  opened.push(client)
  return client
}

async function serve(settings: Record<string, string | number> = {}): Promise<RedisServer> {
  const server = await startRedis({ settings })
  servers.push(server)
  return server
}

afterEach(async () => {
  for (const client of opened.splice(0)) client.disconnect()
  await Promise.all(servers.splice(0).map((server) => server.dispose()))
})

describeOn('redis')('one Redis', () => {
  it('is opened, named, and found fit', async () => {
    const client = await open(redisUrl())
    await checkRedis(client)
    expect(await client.client('GETNAME')).toBe('mayfly-test')
  })
})

describeOn('redis-cluster')('a Redis Cluster', () => {
  it('is opened and found fit', async () => {
    const client = await open(...redisClusterUrls())
    await checkRedis(client)
    await client.set('test-{of}.cluster', '1', 'PX', 1_000)
    expect(await client.get('test-{of}.cluster')).toBe('1')
  })

  it('is refused by the address of one node', async () => {
    const client = await open(redisClusterUrls()[0] ?? '')
    await expect(checkRedis(client)).rejects.toThrow(/a node of a Cluster: give several of its nodes/)
  })

  it('has no database but the first', async () => {
    const [first = '', ...others] = redisClusterUrls()
    await expect(open(`${first}/3`, ...others)).rejects.toThrow('database 0 alone')
  })
})

describeWith('redis-cli')('a Redis Cluster of its own', () => {
  let cluster: RedisCluster

  beforeAll(async () => {
    cluster = await startRedisCluster()
  })
  afterAll(() => cluster.dispose())

  it('that is joined by a node which may evict keys is told of, and refused at the next start', async () => {
    const client = await open(...cluster.urls)
    const told: string[] = []
    let interruptions = 0
    onInterruption(client, () => (interruptions += 1))
    watchJoining(client, (error) => told.push(error.message))
    const node = await open(cluster.urls[0] ?? '')
    await node.call('CONFIG', 'SET', 'maxmemory-policy', 'allkeys-lru')
    // Who is connected learns to know it anew.
    await node.call('CLIENT', 'KILL', 'TYPE', 'normal')
    const fault = `Redis at 127.0.0.1:${cluster.nodes[0]?.port} has maxmemory-policy allkeys-lru`
    await until('the fault', async () => {
      for (const tag of ['p1', 'p2', 'p3']) await client.get(`{${tag}}`).catch(() => null)
      return told.some((message) => message.includes(fault))
    })
    expect(interruptions).toBeGreaterThan(0)
    await expect(checkRedis(await open(...cluster.urls))).rejects.toThrow(fault)
  })
})

describeWith('redis-server')('a Redis', () => {
  it('that may evict keys is refused, with what to set', async () => {
    const server = await serve({ 'maxmemory-policy': 'allkeys-lru' })
    await expect(checkRedis(await open(server.url))).rejects.toThrow(
      `Redis at 127.0.0.1:${server.port} has maxmemory-policy allkeys-lru and may drop what Mayfly keeps there: ` +
        'set `maxmemory-policy noeviction`',
    )
  })

  it('is opened with the user, password and database of its URL', async () => {
    const { port } = await serve({ requirepass: '"p@ss word"' })
    const client = await open(`redis://default:${encodeURIComponent('p@ss word')}@127.0.0.1:${port}/5`)
    expect(await client.client('INFO')).toMatch(/ db=5 /)
  })

  it('that takes no such password is refused, without saying it', async () => {
    const { port } = await serve({ requirepass: 'right' })
    const refused = open(`redis://default:wrong@127.0.0.1:${port}`)
    await expect(refused).rejects.toThrow(/can't be reached at redis:\/\/127\.0\.0\.1:\d+ .*WRONGPASS/)
  })

  it('that is not there is told of', async () => {
    const server = await serve()
    await server.kill('SIGKILL')
    await expect(open(server.url)).rejects.toThrow(
      /can't be reached at redis:.* \(REDIS_URL\): .*ECONNREFUSED/,
    )
  })

  it('that gives no answer is told of in time', async () => {
    const server = await serve()
    const client = await open(server.url)
    await server.kill('SIGSTOP')
    await expect(checkRedis(client)).rejects.toThrow(`Redis at 127.0.0.1:${server.port} gives no answer`)
    await server.kill('SIGCONT')
    await until('Redis to be fit again', () =>
      checkRedis(client).then(
        () => true,
        () => false,
      ),
    )
  })

  it('that became a replica is connected to anew, since its name may lead to the new master', async () => {
    const server = await serve()
    const client = await open(server.url)
    const connection = await client.client('ID')
    await client.call('REPLICAOF', '127.0.0.1', '1')
    await expect(client.set('key', 'value')).rejects.toThrow('READONLY')
    await until('another connection', async () => {
      const now = await client.client('ID').catch(() => connection)
      return now !== connection
    })
    await client.call('REPLICAOF', 'NO', 'ONE')
    expect(await client.set('key', 'value')).toBe('OK')
  })

  it('tells of a lost connection, not of each attempt, and is connected to again', async () => {
    const server = await serve()
    const errors: unknown[] = []
    const client = await openRedis({
      urls: [server.url],
      name: 'mayfly-test',
      onError: (error) => errors.push(error),
    })
    opened.push(client)
    let interruptions = 0
    onInterruption(client, () => (interruptions += 1))
    await server.kill('SIGKILL')
    await until('the loss', () => interruptions > 0)
    const attempts: number[] = []
    client.on('reconnecting', (delayMs: number) => attempts.push(delayMs))
    await until('several attempts', () => attempts.length > 3)
    expect(errors.length).toBeGreaterThan(0)
    expect(new Set(errors.map(String)).size).toBe(errors.length)
    await server.startAgain()
    await until('the connection', () => client.ping().catch(() => null))
  })
})
