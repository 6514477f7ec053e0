import { setTimeout as pause } from 'node:timers/promises'
import { Redis } from 'ioredis'
import type { RedisServer } from '#infra/redis/redis.js'
import { call } from '#test/harness/client.js'
import { startRedisCluster, type RedisCluster } from '#test/harness/redis.js'
import { describeOn } from '#test/harness/servers.js'
import { until } from '#test/harness/until.js'
import { ClusterNodes } from './cluster-nodes.js'
import { Deployment, IS_LONG } from './deployment.js'
import { RECOVERS_WITHIN_MS, LoadTest } from './load-test.js'

const TEST_TIMEOUT_MS = 240_000
/** A node that does not answer for this time has failed. */
const NODE_TIMEOUT_MS = 3_000
/** Longer than the timeout of a connection without an answer. */
const HUNG_MS = 20_000
/** A partition of inbox-events: among the first thousand slots of its master. */
const TAG = 'p1'
const MOVED_SLOTS = 1_000

describeOn(
  'kafka',
  'redis-cluster',
  'clickhouse',
)('a Redis Cluster', () => {
  let cluster: RedisCluster
  let nodes: ClusterNodes
  let deployment: Deployment

  beforeAll(async () => {
    const settings = { 'cluster-node-timeout': NODE_TIMEOUT_MS, 'repl-diskless-sync-delay': 0 }
    cluster = await startRedisCluster({ replicas: 1, settings })
    nodes = new ClusterNodes(cluster)
    deployment = await Deployment.start({ env: { REDIS_URL: cluster.urls.join(',') } })
  }, TEST_TIMEOUT_MS)
  afterAll(async () => {
    await deployment.dispose()
    await cluster.dispose()
  })

  async function served(): Promise<{ master: RedisServer; replica: RedisServer; witness: RedisServer }> {
    const { master, replicas } = await nodes.servingTag(TAG)
    const [replica] = replicas
    const witness = cluster.nodes.find((node) => node !== master && node !== replica)
    if (replica === undefined || witness === undefined) throw new Error('the master has no replica')
    return { master, replica, witness }
  }

  it(
    'whose master is killed while its replica is behind: the missing data is rebuilt from the log',
    async () => {
      const loadTest = await LoadTest.start(deployment)
      const { master, replica, witness } = await served()
      await replica.kill('SIGSTOP')
      await disconnectReplicas(master)
      await loadTest.untilProgress()
      await master.kill('SIGKILL')
      await replica.kill('SIGCONT')
      await nodes.untilRole(replica, 'master', witness)
      await loadTest.untilProgress()
      const isNoticed = () => deployment.output().includes('the views were lost or restored')
      await until('the stale replica to be noticed', isNoticed, RECOVERS_WITHIN_MS)
      await master.restart()
      await nodes.untilRole(master, 'replica', witness)
      await loadTest.untilProgress()
      await loadTest.stopAndVerify()
    },
    TEST_TIMEOUT_MS,
  )

  if (IS_LONG)
    it(
      'whose master hangs until another has replaced it',
      async () => {
        const loadTest = await LoadTest.start(deployment)
        const { master, replica, witness } = await served()
        await master.kill('SIGSTOP')
        await nodes.untilRole(replica, 'master', witness)
        await loadTest.untilProgress()
        await pause(HUNG_MS)
        await master.kill('SIGCONT')
        await nodes.untilRole(master, 'replica', witness)
        await loadTest.untilProgress()
        await loadTest.stopAndVerify()
      },
      TEST_TIMEOUT_MS,
    )

  it(
    'that loses all data of a master and its replica',
    async () => {
      const loadTest = await LoadTest.start(deployment)
      const { master, replica, witness } = await served()
      await replica.kill('SIGKILL')
      await master.kill('SIGKILL')
      await until('the API to refuse', async () => {
        const { status } = await call(deployment.target, 'GET', '/v1/inboxes')
        return status === 503
      })
      await master.restart()
      await nodes.untilRole(master, 'master', witness)
      await loadTest.untilProgress()
      await replica.restart()
      await nodes.untilRole(replica, 'replica', witness)
      await loadTest.stopAndVerify()
    },
    TEST_TIMEOUT_MS,
  )

  it(
    'whose slots move from one master to another: everything continues, and nothing is lost',
    async () => {
      const loadTest = await LoadTest.start(deployment)
      const { master } = await served()
      const { master: other } = await nodes.servingTag('p2')
      await nodes.moveSlots(master, other, MOVED_SLOTS)
      await loadTest.untilProgress()
      expect((await nodes.servingTag(TAG)).master).toBe(other)
      await loadTest.stopAndVerify()
    },
    TEST_TIMEOUT_MS,
  )
})

/** Disconnects the replicas, so that later writes do not reach a replica that hangs. */
async function disconnectReplicas({ url }: RedisServer): Promise<void> {
  const redis = new Redis(url)
  await redis.call('CLIENT', 'KILL', 'TYPE', 'replica')
  redis.disconnect()
}
