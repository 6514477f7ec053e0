import { setTimeout as pause } from 'node:timers/promises'
import type { RedisServer } from '#infra/redis/redis.js'
import { call } from '#test/harness/client.js'
import { startRedisCluster, type RedisCluster } from '#test/harness/redis.js'
import { describeOn } from '#test/harness/servers.js'
import { until } from '#test/harness/until.js'
import { Redis } from 'ioredis'
import { ClusterNodes } from './cluster-nodes.js'
import { Deployment } from './deployment.js'
import { IS_LONG } from './long.js'
import { RECOVERS_WITHIN_MS, Trial } from './trial.js'

const TRIAL_MS = 240_000
/** A node that is not heard of for so long has failed. */
const NODE_TIMEOUT_MS = 1_000
/** Longer than a connection without an answer is kept. */
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
  }, TRIAL_MS)
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
    'whose master is killed while its replica is behind: what the replica lacks is taken from the log again',
    async () => {
      const trial = await Trial.begin(deployment)
      const { master, replica, witness } = await served()
      await replica.kill('SIGSTOP')
      await disconnectReplicas(master)
      await trial.goesOn()
      await master.kill('SIGKILL')
      await replica.kill('SIGCONT')
      await nodes.untilRole(replica, 'master', witness)
      await trial.goesOn()
      const isNoticed = () => deployment.output().includes('the views were lost or restored')
      await until('the replica to be found behind', isNoticed, RECOVERS_WITHIN_MS)
      await master.startAgain()
      await nodes.untilRole(master, 'replica', witness)
      await trial.goesOn()
      await trial.end()
    },
    TRIAL_MS,
  )

  if (IS_LONG)
    it(
      'whose master hangs until another has taken its place',
      async () => {
        const trial = await Trial.begin(deployment)
        const { master, replica, witness } = await served()
        await master.kill('SIGSTOP')
        await nodes.untilRole(replica, 'master', witness)
        await trial.goesOn()
        await pause(HUNG_MS)
        await master.kill('SIGCONT')
        await nodes.untilRole(master, 'replica', witness)
        await trial.goesOn()
        await trial.end()
      },
      TRIAL_MS,
    )

  it(
    'that loses all that a master and its replica held',
    async () => {
      const trial = await Trial.begin(deployment)
      const { master, replica, witness } = await served()
      await replica.kill('SIGKILL')
      await master.kill('SIGKILL')
      await until('the API to refuse', async () => {
        const { status } = await call(deployment.target, 'GET', '/v1/inboxes')
        return status === 503
      })
      await master.startAgain()
      await nodes.untilRole(master, 'master', witness)
      await trial.goesOn()
      await replica.startAgain()
      await nodes.untilRole(replica, 'replica', witness)
      await trial.end()
    },
    TRIAL_MS,
  )

  it(
    'whose slots go from one master to another: everything goes on, and nothing is lost on the way',
    async () => {
      const trial = await Trial.begin(deployment)
      const { master } = await served()
      const { master: other } = await nodes.servingTag('p2')
      await nodes.moveSlots(master, other, MOVED_SLOTS)
      await trial.goesOn()
      expect((await nodes.servingTag(TAG)).master).toBe(other)
      await trial.end()
    },
    TRIAL_MS,
  )
})

/** What the master is given from now on does not reach a replica that hangs. */
async function disconnectReplicas({ url }: RedisServer): Promise<void> {
  const redis = new Redis(url)
  await redis.call('CLIENT', 'KILL', 'TYPE', 'replica')
  redis.disconnect()
}
