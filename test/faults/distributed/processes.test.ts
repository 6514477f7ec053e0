import { Redis } from 'ioredis'
import { Kafka, logLevel } from 'kafkajs'
import { call, only, pagesFrom, type InboxJson } from '#test/harness/client.js'
import { startProcess } from '#test/harness/mayfly-process.js'
import { distributedEnvironment } from '#test/harness/mayfly.js'
import { describeOn, kafkaBrokers, redisUrl } from '#test/harness/servers.js'
import { until } from '#test/harness/until.js'
import { Deployment, ROLES } from './deployment.js'
import { IS_LONG } from './long.js'
import { Trial } from './trial.js'

const ROUNDS = IS_LONG ? 3 : 1
const TRIAL_MS = 180_000
/** Of a consumer that is not heard of: its partitions then go to others. */
const SESSION_MS = 12_000

describeOn(
  'kafka',
  'redis',
  'clickhouse',
)('processes that die or hang under load', () => {
  let deployment: Deployment

  beforeAll(async () => {
    deployment = await Deployment.start()
  }, TRIAL_MS)
  afterAll(() => deployment.dispose())

  test.each(ROLES)(
    '%s is killed: nothing promised is lost, nothing comes twice',
    async (role) => {
      const trial = await Trial.begin(deployment)
      for (let round = 0; round < ROUNDS; round += 1) {
        await deployment.replace(role, 'SIGKILL')
        await trial.goesOn()
      }
      await trial.end()
    },
    TRIAL_MS,
  )

  test.each(ROLES)(
    '%s is asked to end: it ends with 0, and nothing is lost',
    async (role) => {
      const trial = await Trial.begin(deployment)
      expect(await deployment.replace(role, 'SIGTERM')).toBe(0)
      await trial.goesOn()
      await trial.end()
    },
    TRIAL_MS,
  )

  it(
    'a projector that hung while another took its partitions over changes nothing when it goes on',
    async () => {
      const trial = await Trial.begin(deployment)
      const hung = deployment.process('projector')
      hung.signal('SIGSTOP')
      const stoppedAt = Date.now()
      const successor = await deployment.add('projector')
      await trial.goesOn()
      await until('the session to end', () => Date.now() - stoppedAt > SESSION_MS, SESSION_MS * 2)
      hung.signal('SIGCONT')
      await trial.goesOn()
      await trial.end()
      expect(await successor.end('SIGTERM')).toBe(0)
    },
    TRIAL_MS,
  )

  it(
    'projectors that come and go in the middle of batches lose nothing and repeat nothing',
    async () => {
      const trial = await Trial.begin(deployment)
      for (const signal of ['SIGTERM', 'SIGKILL'] as const) {
        const another = await deployment.add('projector')
        await trial.goesOn()
        await another.end(signal)
        await trial.goesOn()
      }
      await trial.end()
    },
    TRIAL_MS,
  )

  describe('an api that answers a POST with an Idempotency-Key', () => {
    const post = (name: string) =>
      call<InboxJson>(deployment.target, 'POST', '/v1/inboxes', {
        body: { labels: { run: name } },
        headers: { 'idempotency-key': name },
      })

    /** Repeats until there is an answer that is not for now; it names the one inbox that was made. */
    async function mustComplete(name: string): Promise<void> {
      const { status, body } = await until(
        'an answer',
        async () => {
          const answer = await post(name)
          return [409, 503].includes(answer.status) ? null : answer
        },
        TRIAL_MS,
      )
      expect(status).toBe(201)
      const [listed] = await pagesFrom<InboxJson>(deployment.target, `/v1/inboxes?label=run:${name}`)
      expect(only(listed?.body ?? [])).toEqual(body)
      expect((await post(name)).headers.get('idempotent-replayed')).toBe('true')
    }

    it(
      'is killed once the request is reserved: the repeat makes the one inbox',
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
        await deployment.replace('api', 'SIGKILL')
        await answer
        await mustComplete('reserved')
      },
      TRIAL_MS,
    )

    it(
      'is killed once the inbox is on the log: the repeat makes no other',
      async () => {
        const projector = deployment.process('projector')
        projector.signal('SIGSTOP')
        const before = await recordsOf(deployment)
        const answer = post('on-the-log').catch(() => null)
        await until('the event', async () => (await recordsOf(deployment)) > before)
        await deployment.process('api').end('SIGKILL')
        await answer
        projector.signal('SIGCONT')
        await deployment.replace('api', 'SIGKILL')
        await mustComplete('on-the-log')
      },
      TRIAL_MS,
    )

    it(
      'and answers 503, since nobody can read yet what it made: the repeat completes it',
      async () => {
        const projector = deployment.process('projector')
        projector.signal('SIGSTOP')
        expect((await post('unread')).status).toBe(503)
        projector.signal('SIGCONT')
        await mustComplete('unread')
      },
      TRIAL_MS,
    )
  })

  it('an api whose key nobody makes readable ends where it is asked to while it starts', async () => {
    const env = {
      ...distributedEnvironment(`alone-${process.pid}`),
      MAYFLY_BOOTSTRAP_API_KEY: 'a-key-that-no-projector-shows',
      MAYFLY_HTTP_PORT: '0',
    }
    // It tells of the signal as a shell would.
    const through = ['timeout', '--preserve-status', '6'] as const
    await expect(startProcess({ app: 'api', env, through })).rejects.toMatchObject({ ending: 143 })
  })
})

/** How many records inbox-events has. */
async function recordsOf({ topicPrefix }: Deployment): Promise<number> {
  const admin = new Kafka({ brokers: kafkaBrokers(), logLevel: logLevel.NOTHING }).admin()
  await admin.connect()
  const offsets = await admin.fetchTopicOffsets(`${topicPrefix}inbox-events`)
  await admin.disconnect()
  return offsets.reduce((sum, { high }) => sum + Number(high), 0)
}
