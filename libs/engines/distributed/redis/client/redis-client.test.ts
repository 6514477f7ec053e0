import { readFile } from 'node:fs/promises'
import { queryRedis } from '#infra/redis/redis.js'
import { freePort, LOOPBACK } from '#infra/servers/ports.js'
import { Authority, type CertificateFiles } from '#test/harness/certificates.js'
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
  it('is connected to with a name, and passes the check', async () => {
    const client = await open(redisUrl())
    await checkRedis(client)
    expect(await client.client('GETNAME')).toBe('mayfly-test')
  })
})

describeOn('redis-cluster')('a Redis Cluster', () => {
  it('is connected to, and passes the check', async () => {
    const client = await open(...redisClusterUrls())
    await checkRedis(client)
    await client.set('test-{of}.cluster', '1', 'PX', 60_000)
    expect(await client.get('test-{of}.cluster')).toBe('1')
  })

  it('is rejected if only one node is configured', async () => {
    const client = await open(redisClusterUrls()[0] ?? '')
    await expect(checkRedis(client)).rejects.toThrow(
      /a node of a Cluster: set REDIS_URL to several of its nodes/,
    )
  })

  it('is rejected with a database other than 0', async () => {
    const [first = '', ...others] = redisClusterUrls()
    await expect(open(`${first}/3`, ...others)).rejects.toThrow('only database 0')
  })
})

describeWith('redis-cli')('a Redis Cluster of its own', () => {
  let cluster: RedisCluster

  beforeAll(async () => {
    cluster = await startRedisCluster()
  })
  afterAll(() => cluster.dispose())

  it('is reported if a node that may evict keys joins it, and rejected at the next start', async () => {
    const client = await open(...cluster.urls)
    // Connects to every node.
    await checkRedis(client)
    const errors: string[] = []
    let interruptions = 0
    onInterruption(client, () => (interruptions += 1))
    watchJoining(client, (error) => errors.push(error.message))
    const node = await open(cluster.urls[0] ?? '')
    await node.call('CONFIG', 'SET', 'maxmemory-policy', 'allkeys-lru')
    // The clients discover the nodes again.
    await node.call('CLIENT', 'KILL', 'TYPE', 'normal')
    const failure = `Redis at 127.0.0.1:${cluster.nodes[0]?.port} has maxmemory-policy allkeys-lru`
    await until('the failure', async () => {
      for (const tag of ['p1', 'p2', 'p3']) await client.get(`{${tag}}`).catch(() => null)
      return errors.some((message) => message.includes(failure))
    })
    expect(interruptions).toBeGreaterThan(0)
    await expect(checkRedis(await open(...cluster.urls))).rejects.toThrow(failure)
  })
})

describeWith('redis-server')('a Redis', () => {
  it('that may evict keys is rejected, with what to set', async () => {
    const server = await serve({ 'maxmemory-policy': 'allkeys-lru' })
    await expect(checkRedis(await open(server.url))).rejects.toThrow(
      `Redis at 127.0.0.1:${server.port} has maxmemory-policy allkeys-lru and may evict Mayfly's keys: ` +
        'set `maxmemory-policy noeviction`',
    )
  })

  it('is connected to with the user, password and database of its URL', async () => {
    const { port } = await serve({ requirepass: '"p@ss word"' })
    const client = await open(`redis://default:${encodeURIComponent('p@ss word')}@127.0.0.1:${port}/5`)
    expect(await client.client('INFO')).toMatch(/ db=5 /)
  })

  it('that rejects the password is reported, without the password', async () => {
    const { port } = await serve({ requirepass: 'right' })
    const rejected = open(`redis://default:wrong@127.0.0.1:${port}`)
    await expect(rejected).rejects.toThrow(
      /can't be reached at redis:\/\/127\.0\.0\.1:\d+ .*user or password in REDIS_URL is wrong/,
    )
  })

  it('that is down is reported', async () => {
    const server = await serve()
    await server.kill('SIGKILL')
    await expect(open(server.url)).rejects.toThrow(
      /can't be reached at redis:.* \(REDIS_URL\): .*ECONNREFUSED/,
    )
  })

  it('that does not answer is reported in time', async () => {
    const server = await serve()
    const client = await open(server.url)
    await server.kill('SIGSTOP')
    await expect(checkRedis(client)).rejects.toThrow(`Redis at 127.0.0.1:${server.port} does not answer`)
    await server.kill('SIGCONT')
    await until('Redis to pass the check', () =>
      checkRedis(client).then(
        () => true,
        () => false,
      ),
    )
  })

  it('that became a replica is reconnected to, because its name may belong to the new master', async () => {
    const server = await serve()
    const [client, admin] = [await open(server.url), await open(server.url)]
    const connection = await client.client('ID')
    await admin.call('REPLICAOF', '127.0.0.1', '1')
    await expect(client.set('key', 'value')).rejects.toThrow('READONLY')
    await until('another connection', async () => {
      const now = await client.client('ID').catch(() => connection)
      return now !== connection
    })
    await admin.call('REPLICAOF', 'NO', 'ONE')
    // It may answer once before it is ready for more commands.
    expect(await until('a write', () => client.set('key', 'value').catch(() => null))).toBe('OK')
  })

  it('reports a lost connection once, not at each attempt, and reconnects', async () => {
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
    await server.restart()
    await until('the connection', () => client.ping().catch(() => null))
  })
})

describeWith('redis-server')('a Redis Cluster over TLS', () => {
  let authority: Authority
  let ca: string
  let files: CertificateFiles

  beforeAll(async () => {
    authority = await Authority.make()
    ca = await readFile(authority.certFile, 'utf8')
    files = await authority.issue('redis', { hosts: [LOOPBACK] })
  })
  afterAll(() => authority.dispose())

  /** The address of one node that has every slot. */
  async function serveCluster(settings: Record<string, string>): Promise<string> {
    const tlsPort = await freePort()
    const { port } = await serve({
      'cluster-enabled': 'yes',
      'cluster-announce-ip': LOOPBACK,
      'tls-port': tlsPort,
      'tls-cert-file': files.cert,
      'tls-key-file': files.key,
      'tls-ca-cert-file': authority.certFile,
      'tls-auth-clients': 'no',
      ...settings,
    })
    await queryRedis(port, 'CLUSTER ADDSLOTSRANGE 0 16383')
    await until('every slot', async () => (await queryRedis(port, 'CLUSTER INFO'))?.includes('state:ok'))
    return `rediss://${LOOPBACK}:${tlsPort}`
  }

  async function openOver(url: string): Promise<RedisClient> {
    const tls = { ca, cert: null, key: null }
    const client = await openRedis({ urls: [url, url], name: 'mayfly-test', tls, onError: () => undefined })
    opened.push(client)
    return client
  }

  it('is connected to if a certificate of a private authority has the announced address', async () => {
    const client = await openOver(await serveCluster({ 'tls-cluster': 'yes' }))
    await checkRedis(client)
    expect(await client.set('test', '1')).toBe('OK')
  })

  it('is rejected in time if it announces another host, or its port without TLS', async () => {
    const elsewhere = { 'cluster-announce-ip': '127.0.0.2', bind: `${LOOPBACK} 127.0.0.2` }
    const urls = await Promise.all([
      serveCluster({ 'tls-cluster': 'yes', ...elsewhere }),
      serveCluster({ 'tls-cluster': 'no' }),
    ])
    const [named, open] = await Promise.allSettled(urls.map(openOver))
    const rejected = (why: RegExp) => ({ reason: { message: expect.stringMatching(why) as unknown } })
    expect(named).toMatchObject(rejected(/certificate is for another host/))
    expect(open).toMatchObject(rejected(/use TLS/))
  })
})
