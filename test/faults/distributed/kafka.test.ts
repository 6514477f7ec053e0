import { call, createInbox, messagesOf, send, mail } from '#test/harness/client.js'
import { startKafka, type KafkaCluster } from '#test/harness/kafka.js'
import { describeOn, kafkaBrokers } from '#test/harness/servers.js'
import { answerToRcpt } from '#test/harness/smtp.js'
import { until } from '#test/harness/until.js'
import { setTimeout as pause } from 'node:timers/promises'
import { Kafka, logLevel } from 'kafkajs'
import { Deployment, ROLES } from './deployment.js'
import { IS_LONG, Trial } from './trial.js'

const TRIAL_MS = 240_000
const AWAY_MS = IS_LONG ? 30_000 : 5_000

describeOn('kafka', 'redis')('one broker', () => {
  let kafka: KafkaCluster
  let deployment: Deployment

  beforeAll(async () => {
    kafka = await startKafka()
    deployment = await Deployment.start({ env: { KAFKA_BROKERS: kafka.brokers.join(',') } })
  }, TRIAL_MS)
  afterAll(async () => {
    await deployment.dispose()
    await kafka.dispose()
  })

  it(
    'killed and started again: refusals meanwhile, and afterwards all that was promised',
    async () => {
      const { target } = deployment
      const trial = await Trial.begin(deployment)
      const [broker] = kafka.nodes
      await broker?.kill('SIGKILL')
      await refusesHttp(deployment)
      const [inbox] = trial.ledger.inboxes.values()
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
      await broker?.startAgain()
      await trial.goesOn()
      await trial.end()
    },
    TRIAL_MS,
  )
})

describeOn('kafka', 'redis')('three brokers', () => {
  let kafka: KafkaCluster
  let deployment: Deployment

  beforeAll(async () => {
    kafka = await startKafka({ nodes: 3, heapMib: 320 })
    const env = { KAFKA_BROKERS: kafka.brokers.join(','), KAFKA_REPLICATION: '3' }
    deployment = await Deployment.start({ env })
  }, TRIAL_MS)
  afterAll(async () => {
    await deployment.dispose()
    await kafka.dispose()
  })

  it(
    'one of them down: everything goes on',
    async () => {
      const trial = await Trial.begin(deployment)
      const [, broker] = kafka.nodes
      await broker?.kill('SIGKILL')
      await trial.goesOn()
      await broker?.startAgain()
      await trial.goesOn()
      await trial.end()
    },
    TRIAL_MS,
  )

  it(
    'all of them down, and started again: all that was promised is there',
    async () => {
      const trial = await Trial.begin(deployment)
      await Promise.all(kafka.nodes.map((node) => node.kill('SIGKILL')))
      await refusesHttp(deployment)
      await pause(AWAY_MS)
      await Promise.all(kafka.nodes.map((node) => node.startAgain()))
      await trial.goesOn()
      await trial.end()
    },
    TRIAL_MS,
  )
})

/** Resolves once the API says that nothing can be changed now. */
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

describeOn('kafka', 'redis')('a record that nobody can decode', () => {
  let deployment: Deployment

  beforeAll(async () => {
    deployment = await Deployment.start()
  }, TRIAL_MS)
  afterAll(() => deployment.dispose())

  it(
    'is set aside with its reason, and its partition goes on',
    async () => {
      const { target, topicPrefix } = deployment
      const inbox = await createInbox(target)
      const kafka = new Kafka({ clientId: 'poisoner', brokers: kafkaBrokers(), logLevel: logLevel.NOTHING })
      const producer = kafka.producer()
      const admin = kafka.admin()
      await Promise.all([producer.connect(), admin.connect()])
      try {
        const messages = [{ key: inbox.id, value: 'not an event', headers: { ce_type: 'poison' } }]
        await producer.send({ topic: `${topicPrefix}inbox-events`, messages, acks: -1 })
        await send(target, inbox.address, mail('behind the poison', 'text'))
        const [message] = await messagesOf(target, inbox.id, 1)
        expect(message).toMatchObject({ subject: 'behind the poison' })
        const [end] = await admin.fetchTopicOffsets(`${topicPrefix}inbox-events.dead-letter`)
        expect(end).toMatchObject({ high: '1' })
        expect(await answerToRcpt(target, inbox.address)).toMatch(/^250 /)
      } finally {
        await Promise.all([producer.disconnect(), admin.disconnect()])
      }
    },
    TRIAL_MS,
  )
})
