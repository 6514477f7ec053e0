import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { call, createInbox, type InboxJson } from '#test/harness/client.js'
import { startRedis, type RedisServer } from '#test/harness/redis.js'
import { describeOn } from '#test/harness/servers.js'
import { answerToRcpt } from '#test/harness/smtp.js'
import { until } from '#test/harness/until.js'
import { Redis } from 'ioredis'
import { snapshotOfApi, untilReady } from '../api-snapshot.js'
import { Deployment, IS_LONG } from './deployment.js'
import { LoadTest } from './load-test.js'

const TEST_TIMEOUT_MS = 240_000
const COMPLETE_WITHIN_MS = 120_000
const HUNG_MS = IS_LONG ? 20_000 : 6_000

describeOn(
  'kafka',
  'redis',
  'clickhouse',
)('Redis', () => {
  let redis: RedisServer
  let deployment: Deployment

  beforeAll(async () => {
    redis = await startRedis({ persistence: 'dump' })
    deployment = await Deployment.start({ hasWebhooks: true, env: { REDIS_URL: redis.url } })
  }, TEST_TIMEOUT_MS)
  afterAll(async () => {
    await deployment.dispose()
    await redis.dispose()
  })

  /**
   * Expects temporary refusals, never a 404 or 550, for known inboxes until the views are complete again. If MAIL was
   * refused, RCPT is out of sequence.
   */
  async function verifyNoPermanentRefusal(inboxes: Iterable<InboxJson>): Promise<void> {
    const { target } = deployment
    const look = async () => {
      const isReady = (await call(target, 'GET', '/readyz')).status === 200
      for (const { id, address } of [...inboxes].slice(-3)) {
        const { status } = await call(target, 'GET', `/v1/inboxes/${id}`)
        expect([200, 503]).toContain(status)
        expect(await answerToRcpt(target, address)).toMatch(/^(250|451|421) |need MAIL/)
      }
      return isReady
    }
    await until('the views to be complete again', look, COMPLETE_WITHIN_MS)
  }

  function dump(): string {
    return join(redis.dataDir, 'dump.rdb')
  }

  async function inRedis(work: (client: Redis) => Promise<unknown>): Promise<void> {
    const client = new Redis(redis.url)
    await work(client)
    client.disconnect()
  }

  it(
    'flushed under load: the views are rebuilt, and nothing is permanently refused meanwhile',
    async () => {
      const loadTest = await LoadTest.start(deployment)
      await inRedis((client) => client.flushall())
      await verifyNoPermanentRefusal(loadTest.acknowledged.inboxes.values())
      await loadTest.untilProgress()
      await loadTest.stopAndVerify()
    },
    TEST_TIMEOUT_MS,
  )

  it(
    'flushed while idle: noticed, and rebuilt to the same answers',
    async () => {
      const { target } = deployment
      const inbox = await createInbox(target)
      const deleted = await createInbox(target)
      await call(target, 'DELETE', `/v1/inboxes/${deleted.id}`)
      const before = await snapshotOfApi(target, [inbox.id, deleted.id], 5)
      await inRedis((client) => client.flushall())
      await verifyNoPermanentRefusal([inbox])
      expect(await snapshotOfApi(target, [inbox.id, deleted.id], 5)).toEqual(before)
    },
    TEST_TIMEOUT_MS,
  )

  it(
    'killed with its data, and restarted',
    async () => {
      const loadTest = await LoadTest.start(deployment)
      await redis.kill('SIGKILL')
      await until('the API to refuse', async () => {
        const { status } = await call(deployment.target, 'GET', '/v1/inboxes')
        return status === 503
      })
      await redis.restart()
      await verifyNoPermanentRefusal(loadTest.acknowledged.inboxes.values())
      await loadTest.untilProgress()
      await loadTest.stopAndVerify()
    },
    TEST_TIMEOUT_MS,
  )

  it(
    'hung: requests are refused in bounded time, and everything continues afterwards',
    async () => {
      const loadTest = await LoadTest.start(deployment)
      await redis.kill('SIGSTOP')
      try {
        const asked = Date.now()
        const { status } = await call(deployment.target, 'GET', '/v1/inboxes')
        expect(status).toBe(503)
        expect(Date.now() - asked).toBeLessThan(10_000)
        await pause(HUNG_MS)
      } finally {
        await redis.kill('SIGCONT')
      }
      await loadTest.untilProgress()
      await loadTest.stopAndVerify()
    },
    TEST_TIMEOUT_MS,
  )

  it(
    'out of memory: requests that need memory are refused or wait, and continue once there is some',
    async () => {
      const { target } = deployment
      const loadTest = await LoadTest.start(deployment)
      await inRedis((client) => client.config('SET', 'maxmemory', '1mb'))
      try {
        await until('the API to refuse', async () => {
          const body = { label: 'refused while Redis is full' }
          const { status } = await call(target, 'POST', '/v1/inboxes', { body: { labels: body } })
          expect([201, 503]).toContain(status)
          return status === 503
        })
        await pause(HUNG_MS)
      } finally {
        await inRedis((client) => client.config('SET', 'maxmemory', '0'))
      }
      await loadTest.untilProgress()
      await loadTest.stopAndVerify()
    },
    TEST_TIMEOUT_MS,
  )

  it(
    'restored from an older snapshot: later inboxes, mails and deletions are there again',
    async () => {
      const { target } = deployment
      const ended = await createInbox(target)
      await inRedis((client) => client.save())
      const snapshot = await readFile(dump())
      const loadTest = await LoadTest.start(deployment)
      expect((await call(target, 'DELETE', `/v1/inboxes/${ended.id}`)).status).toBe(200)
      await redis.kill('SIGKILL')
      await writeFile(dump(), snapshot)
      await redis.restart()
      await verifyNoPermanentRefusal(loadTest.acknowledged.inboxes.values())
      await loadTest.untilProgress()
      await loadTest.stopAndVerify()
      await untilReady(target)
      expect((await call(target, 'GET', `/v1/inboxes/${ended.id}`)).status).toBe(410)
      expect(await answerToRcpt(target, ended.address)).toMatch(/^550 /)
    },
    TEST_TIMEOUT_MS,
  )
})
