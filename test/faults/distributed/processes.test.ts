import { Redis } from 'ioredis'
import { Kafka, logLevel } from 'kafkajs'
import { logOptions } from '#libs/engines/distributed/kafka/kafka-log-harness.contract.js'
import { openKafkaEventLog } from '#libs/engines/distributed/kafka/kafka-event-log.js'
import type { EventLog } from '#libs/ports/event-log/event-log.js'
import { call, only, pagesFrom, type InboxJson } from '#test/harness/client.js'
import { startProcess } from '#test/harness/mayfly-process.js'
import { distributedEnvironment } from '#test/harness/mayfly.js'
import { describeOn, kafkaBrokers, redisUrl } from '#test/harness/servers.js'
import { until } from '#test/harness/until.js'
import { Auditor, digestsOf } from '../auditor.js'
import { Deployment, IS_LONG, ROLES } from './deployment.js'
import { LoadTest } from './load-test.js'

const ROUNDS = IS_LONG ? 3 : 1
const TEST_TIMEOUT_MS = 180_000
/** A consumer without heartbeats for this time loses its partitions to others. */
const SESSION_MS = 12_000
const PARTITIONS = 4

describeOn(
  'kafka',
  'redis',
  'clickhouse',
)('processes that die or hang under load', () => {
  let deployment: Deployment
  let log: EventLog
  let auditor: Auditor

  beforeAll(async () => {
    deployment = await Deployment.start()
    const { topicPrefix } = deployment
    log = await openKafkaEventLog(logOptions({ topicPrefix, partitions: PARTITIONS }))
    auditor = await Auditor.of(deployment.target)
  }, TEST_TIMEOUT_MS)
  afterAll(async () => {
    await log.close()
    await deployment.dispose()
  })

  /** Also expects that the audit log has each event once, and continues all checkpoints of before. */
  async function stopAndVerify(loadTest: LoadTest): Promise<void> {
    await loadTest.stopAndVerify()
    await auditor.verify(deployment.target, await digestsOf(log))
  }

  test.each(ROLES)(
    '%s is killed: nothing acknowledged is lost or duplicated',
    async (role) => {
      const loadTest = await LoadTest.start(deployment)
      for (let round = 0; round < ROUNDS; round += 1) {
        await deployment.restart(role, 'SIGKILL')
        await loadTest.untilProgress()
      }
      await stopAndVerify(loadTest)
    },
    TEST_TIMEOUT_MS,
  )

  test.each(ROLES)(
    '%s gets SIGTERM: it exits with 0, and nothing is lost',
    async (role) => {
      const loadTest = await LoadTest.start(deployment)
      expect(await deployment.restart(role, 'SIGTERM')).toBe(0)
      await loadTest.untilProgress()
      await stopAndVerify(loadTest)
    },
    TEST_TIMEOUT_MS,
  )

  it.each(['projector', 'lifecycle'] as const)(
    'a %s that hung while another took its partitions over changes nothing when it continues',
    async (role) => {
      const loadTest = await LoadTest.start(deployment)
      const hung = deployment.process(role)
      hung.signal('SIGSTOP')
      const stoppedAt = Date.now()
      const successor = await deployment.add(role)
      await loadTest.untilProgress()
      await until('the session to end', () => Date.now() - stoppedAt > SESSION_MS, SESSION_MS * 2)
      hung.signal('SIGCONT')
      await loadTest.untilProgress()
      await stopAndVerify(loadTest)
      expect(await successor.end('SIGTERM')).toBe(0)
    },
    TEST_TIMEOUT_MS,
  )

  it.each(['projector', 'lifecycle'] as const)(
    '%s processes that start and stop in the middle of batches lose nothing and repeat nothing',
    async (role) => {
      const loadTest = await LoadTest.start(deployment)
      await loadTest.startAndEndAnother(role)
      await stopAndVerify(loadTest)
    },
    TEST_TIMEOUT_MS,
  )

  describe('an api process during a POST with an Idempotency-Key', () => {
    const post = (name: string) =>
      call<InboxJson>(deployment.target, 'POST', '/v1/inboxes', {
        body: { labels: { run: name } },
        headers: { 'idempotency-key': name },
      })

    /** Repeats the POST until its answer is final. Expects that it has the only inbox that was created. */
    async function verifyCompletes(name: string): Promise<void> {
      const { status, body } = await until(
        'an answer',
        async () => {
          const answer = await post(name)
          return [409, 503].includes(answer.status) ? null : answer
        },
        TEST_TIMEOUT_MS,
      )
      expect(status).toBe(201)
      const [listed] = await pagesFrom<InboxJson>(deployment.target, `/v1/inboxes?label=run:${name}`)
      expect(only(listed?.body ?? [])).toEqual(body)
      expect((await post(name)).headers.get('idempotent-replayed')).toBe('true')
    }

    it(
      'is killed once the request is reserved: the repeat creates the inbox',
      async () => {
        const redis = new Redis(redisUrl())
        const answer = post('reserved').catch(() => null)
        await until('the reservation', async () => {
          const [, keys] = await redis.scan(
            0,
            'MATCH',
            `${deployment.topicPrefix}idempotency:*`,
            'COUNT',
            1e6,
          )
          return keys.length > 0
        })
        redis.disconnect()
        await deployment.restart('api', 'SIGKILL')
        await answer
        await verifyCompletes('reserved')
      },
      TEST_TIMEOUT_MS,
    )

    it(
      'is killed once the inbox is on the log: the repeat creates no other inbox',
      async () => {
        const projector = deployment.process('projector')
        projector.signal('SIGSTOP')
        const before = await recordsOf(deployment)
        const answer = post('on-the-log').catch(() => null)
        await until('the event', async () => (await recordsOf(deployment)) > before)
        await deployment.process('api').end('SIGKILL')
        await answer
        projector.signal('SIGCONT')
        await deployment.restart('api', 'SIGKILL')
        await verifyCompletes('on-the-log')
      },
      TEST_TIMEOUT_MS,
    )

    it(
      'answers 503, because the views do not show the inbox yet: the repeat completes it',
      async () => {
        const projector = deployment.process('projector')
        projector.signal('SIGSTOP')
        expect((await post('unread')).status).toBe(503)
        projector.signal('SIGCONT')
        await verifyCompletes('unread')
      },
      TEST_TIMEOUT_MS,
    )
  })

  it('an api process that waits for its first key to be readable ends at SIGTERM', async () => {
    const env = {
      ...distributedEnvironment(`alone-${process.pid}`),
      MAYFLY_BOOTSTRAP_API_KEY: 'a-key-that-no-projector-shows',
      MAYFLY_HTTP_PORT: '0',
    }
    // The exit code names the signal, as in a shell.
    const through = ['timeout', '--preserve-status', '6'] as const
    await expect(startProcess({ app: 'api', env, through })).rejects.toMatchObject({ ending: 143 })
  })
})

/** The number of records in inbox-events. */
async function recordsOf({ topicPrefix }: Deployment): Promise<number> {
  const admin = new Kafka({ brokers: kafkaBrokers(), logLevel: logLevel.NOTHING }).admin()
  await admin.connect()
  const offsets = await admin.fetchTopicOffsets(`${topicPrefix}inbox-events`)
  await admin.disconnect()
  return offsets.reduce((sum, { high }) => sum + Number(high), 0)
}
