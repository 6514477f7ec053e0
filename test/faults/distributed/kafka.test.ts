import { inboxEventCodec } from '#libs/ports/event-log/cloud-event.js'
import { mintId } from '#libs/domain/ids/mint.js'
import { brand, type InboxId } from '#libs/domain/ids/typeid.js'
import {
  call,
  createInbox,
  messagesOf,
  send,
  mail,
  type InboxJson,
  type MessageJson,
  type Target,
} from '#test/harness/client.js'
import { startKafka, type KafkaCluster } from '#test/harness/kafka.js'
import { startRedis, type RedisServer } from '#test/harness/redis.js'
import { describeOn, kafkaBrokers } from '#test/harness/servers.js'
import { answerToRcpt } from '#test/harness/smtp.js'
import { until } from '#test/harness/until.js'
import { setTimeout as pause } from 'node:timers/promises'
import { Kafka, logLevel, type Admin, type Message, type Producer } from 'kafkajs'
import { Deployment, IS_LONG, ROLES } from './deployment.js'
import { LoadTest, untilBacklogIsEmpty } from './load-test.js'

/** The limit of the topic, for the largest mail. */
const LARGEST_RECORD_BYTES = 26 << 20
const TEST_TIMEOUT_MS = 240_000
const AWAY_MS = IS_LONG ? 30_000 : 5_000

describeOn(
  'kafka',
  'redis',
  'clickhouse',
)('one broker', () => {
  let kafka: KafkaCluster
  let deployment: Deployment

  beforeAll(async () => {
    kafka = await startKafka()
    const env = { KAFKA_BROKERS: kafka.brokers.join(',') }
    deployment = await Deployment.start({ hasWebhooks: true, env })
  }, TEST_TIMEOUT_MS)
  afterAll(async () => {
    await deployment.dispose()
    await kafka.dispose()
  })

  it(
    'killed and restarted: refusals meanwhile, and nothing acknowledged is lost',
    async () => {
      const { target } = deployment
      const loadTest = await LoadTest.start(deployment)
      const [inbox] = loadTest.acknowledged.inboxes.values()
      const shown = await firstMessage(target, inbox)
      const [broker] = kafka.nodes
      await broker?.kill('SIGKILL')
      await refusesHttp(deployment)
      await until(
        'SMTP to refuse',
        async () => {
          const refused = await send(
            target,
            inbox?.address ?? '',
            mail('while the log is away', 'text'),
          ).then(
            () => null,
            (error: unknown) => error as { responseCode?: number },
          )
          return refused?.responseCode === 451
        },
        60_000,
      )
      await readsGoOn(target, inbox, shown)
      for (const role of ROLES) {
        const [process = target] = deployment.metricsOf(role)
        const [ready, metrics] = await Promise.all([
          call(process, 'GET', '/readyz'),
          call<string>(process, 'GET', '/metrics'),
        ])
        expect(ready).toMatchObject({ status: 503, body: { status: 'unavailable' } })
        expect(metrics.body).toContain('process_resident_memory_bytes')
      }
      await pause(AWAY_MS)
      await broker?.restart()
      await loadTest.untilProgress()
      await loadTest.stopAndVerify()
    },
    TEST_TIMEOUT_MS,
  )
})

/** Resolves with the first visible message that the load test has sent to an inbox. */
async function firstMessage(target: Target, inbox: InboxJson | undefined): Promise<MessageJson> {
  const { status, body } = await call<MessageJson>(
    target,
    'GET',
    `/v1/inboxes/${inbox?.id}/messages/wait?timeout=50`,
  )
  expect(status).toBe(200)
  return body
}

/** Expects that stored data is readable, and unknown ids are answered 404, without the log. */
async function readsGoOn(target: Target, inbox: InboxJson | undefined, shown: MessageJson): Promise<void> {
  const path = `/v1/inboxes/${inbox?.id}`
  const paths = [
    path,
    `${path}/messages?limit=1`,
    `${path}/messages/${shown.id}`,
    '/v1/inboxes',
    '/v1/inboxes/inb_00000000000000000000000000',
  ]
  const answers = await Promise.all(paths.map(async (each) => (await call(target, 'GET', each)).status))
  expect(answers).toEqual([200, 200, 200, 200, 404])
}

describeOn(
  'kafka',
  'redis',
  'clickhouse',
)('three brokers', () => {
  let kafka: KafkaCluster
  let deployment: Deployment

  beforeAll(async () => {
    kafka = await startKafka({ nodes: 3, heapMib: 320 })
    const env = { KAFKA_BROKERS: kafka.brokers.join(','), KAFKA_REPLICATION: '3' }
    deployment = await Deployment.start({ env })
  }, TEST_TIMEOUT_MS)
  afterAll(async () => {
    await deployment.dispose()
    await kafka.dispose()
  })

  it(
    'with one of them down: everything continues',
    async () => {
      const loadTest = await LoadTest.start(deployment)
      const [, broker] = kafka.nodes
      await broker?.kill('SIGKILL')
      await loadTest.untilProgress()
      await broker?.restart()
      await loadTest.untilProgress()
      await loadTest.stopAndVerify()
    },
    TEST_TIMEOUT_MS,
  )

  it(
    'all of them down and restarted: nothing acknowledged is lost',
    async () => {
      const loadTest = await LoadTest.start(deployment)
      await Promise.all(kafka.nodes.map((node) => node.kill('SIGKILL')))
      await refusesHttp(deployment)
      await pause(AWAY_MS)
      await Promise.all(kafka.nodes.map((node) => node.restart()))
      await loadTest.untilProgress()
      await loadTest.stopAndVerify()
    },
    TEST_TIMEOUT_MS,
  )
})

/** Resolves once the API refuses changes. */
async function refusesHttp({ target }: Deployment): Promise<void> {
  await until(
    'the API to refuse',
    async () => {
      const { status, body } = await call<{ code?: string }>(target, 'POST', '/v1/inboxes')
      if (status === 503) expect(body.code).toMatch(/^(log-unavailable|catching-up)$/)
      return status === 503
    },
    60_000,
  )
}

function deletionOf(inboxId: InboxId): Pick<Message, 'headers' | 'value'> {
  const { headers, value } = inboxEventCodec.encode({
    ...{ id: mintId('evt'), time: new Date(), source: '/mayfly/api' },
    ...{ accountId: mintId('acc'), environment: 'development', keyId: null },
    event: { type: 'InboxDeleted', inboxId, keyId: mintId('key'), deletedAt: new Date(), inbox: null },
  })
  return { headers: { ...headers }, value: Buffer.from(value) }
}

describeOn(
  'kafka',
  'redis',
  'clickhouse',
)('foreign records', () => {
  let deployment: Deployment
  let redis: RedisServer
  let producer: Producer
  let admin: Admin
  let topic: string

  beforeAll(async () => {
    redis = await startRedis()
    deployment = await Deployment.start({ env: { REDIS_URL: redis.url } })
    topic = `${deployment.topicPrefix}inbox-events`
    const kafka = new Kafka({ clientId: 'another', brokers: kafkaBrokers(), logLevel: logLevel.NOTHING })
    producer = kafka.producer({ transactionalId: topic, maxInFlightRequests: 1, idempotent: true })
    admin = kafka.admin()
    await Promise.all([producer.connect(), admin.connect()])
  }, TEST_TIMEOUT_MS)
  afterAll(async () => {
    await Promise.all([producer.disconnect(), admin.disconnect()])
    await deployment.dispose()
    await redis.dispose()
  })

  async function deadLetters(): Promise<number> {
    const [end] = await admin.fetchTopicOffsets(`${topic}.dead-letter`)
    return Number(end?.high)
  }

  /** Appends in a transaction, whose end takes an offset without a record. */
  async function poison(key: string, record: Partial<Message> = {}): Promise<void> {
    const transaction = await until('a coordinator', () => producer.transaction().catch(() => null))
    const messages = [{ value: 'not an event', headers: { ce_type: 'poison' }, ...record, key }]
    await transaction.send({ topic, messages, acks: -1 })
    await transaction.commit()
  }

  it(
    'that can not be decoded become dead letters with a reason, and the partition continues past them and past gaps',
    async () => {
      const { target } = deployment
      const [inbox, other] = [await createInbox(target), await createInbox(target)]
      await poison(inbox.id)
      await poison(inbox.id, { value: Buffer.alloc(LARGEST_RECORD_BYTES - 200) })
      await poison(inbox.id, deletionOf(brand('inb', other.id)))
      await send(target, inbox.address, mail('after the poison', 'text'))
      const [message] = await messagesOf(target, inbox.id, 1)
      expect(message).toMatchObject({ subject: 'after the poison' })
      expect(await deadLetters()).toBe(3)
      expect((await call(target, 'GET', `/v1/inboxes/${other.id}`)).status).toBe(200)
      expect(await answerToRcpt(target, inbox.address)).toMatch(/^250 /)
      await poison(inbox.id)
      await untilBacklogIsEmpty(target)
    },
    TEST_TIMEOUT_MS,
  )

  it(
    'become dead letters once, even if their batch is retried',
    async () => {
      const { target } = deployment
      const inbox = await createInbox(target)
      await untilBacklogIsEmpty(target)
      const before = await deadLetters()
      const projector = deployment.process('projector')
      const failures = () => projector.output().stderr.split('a batch failed: retrying').length
      await redis.kill('SIGSTOP')
      try {
        const before = failures()
        await poison(inbox.id)
        await until('the batch to be tried several times', () => failures() >= before + 2, 60_000)
      } finally {
        await redis.kill('SIGCONT')
      }
      await untilBacklogIsEmpty(target)
      expect(await deadLetters()).toBe(before + 1)
    },
    TEST_TIMEOUT_MS,
  )
})
