import { Kafka, logLevel } from 'kafkajs'
import { call, createInbox, type Target } from '#test/harness/client.js'
import { startProcess, type MayflyProcess } from '#test/harness/mayfly-process.js'
import { distributedEnvironment } from '#test/harness/mayfly.js'
import { describeOn, kafkaBrokers } from '#test/harness/servers.js'
import { untilReady } from '../api-snapshot.js'

const TEST_TIMEOUT_MS = 240_000
const NAME = `replaced-${process.pid}-${Date.now()}`
const API_KEY = 'a-key-for-the-fault-suites'

describeOn(
  'kafka',
  'redis',
  'clickhouse',
)('a log that was replaced, with the views of the old one', () => {
  const running: MayflyProcess[] = []

  async function start(app: 'api' | 'projector'): Promise<MayflyProcess> {
    const env = { ...distributedEnvironment(NAME), MAYFLY_PARSE_THREADS: '1', MAYFLY_HTTP_PORT: '0' }
    const started = await startProcess({ app, env: { ...env, MAYFLY_BOOTSTRAP_API_KEY: API_KEY } })
    running.push(started)
    return started
  }

  async function startBoth(): Promise<Target> {
    const [api] = await Promise.all([start('api'), start('projector')])
    return { url: `http://127.0.0.1:${api.listening.httpPort}`, smtpPort: 0, apiKey: API_KEY }
  }

  async function endAll(signal: NodeJS.Signals): Promise<void> {
    await Promise.all(running.splice(0).map((each) => each.end(signal)))
  }

  async function deleteTopics(): Promise<void> {
    const admin = new Kafka({ brokers: kafkaBrokers(), logLevel: logLevel.NOTHING }).admin()
    await admin.connect()
    const topics = (await admin.listTopics()).filter((topic) => topic.startsWith(`${NAME}.`))
    await admin.deleteTopics({ topics })
    await admin.disconnect()
  }

  afterAll(async () => {
    await endAll('SIGKILL')
    await deleteTopics()
  })

  it(
    'starts from scratch: the configured key works, and nothing of the old log is shown',
    async () => {
      const before = await startBoth()
      const inbox = await createInbox(before)
      await endAll('SIGTERM')
      await deleteTopics()
      const target = await startBoth()
      await untilReady(target)
      expect((await call(target, 'GET', `/v1/inboxes/${inbox.id}`)).status).toBe(404)
      expect(await call(target, 'GET', '/v1/inboxes')).toMatchObject({ status: 200, body: [] })
      await createInbox(target)
    },
    TEST_TIMEOUT_MS,
  )
})
