import { randomUUID } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { appendTo, Arrivals, consumerOf } from '#libs/ports/event-log/arrivals.contract.js'
import { openKafkaEventLog } from '#libs/engines/distributed/kafka/kafka-event-log.js'
import type { KafkaEventLogOptions } from '#libs/engines/distributed/kafka/open-log.js'
import { logOptions } from '#libs/engines/distributed/kafka/kafka-log-harness.contract.js'
import { serverUsage } from '#libs/engines/clickhouse/clickhouse-usage.js'
import type { ServerAddress } from '#libs/engines/clickhouse/clients.js'
import { call, createInbox, mail, messagesOf, send, type InboxJson } from '#test/harness/client.js'
import { clickhouseUrl } from '#test/harness/servers.js'
import { describeWith } from '#test/harness/tools.js'
import { until } from '#test/harness/until.js'
import { untilCounted, usageOf } from '#test/harness/usage.js'
import { registerWebhook } from '#test/harness/webhooks.js'
import { Deployment, ROLES } from '../faults/distributed/deployment.js'
import { verifyRefusedStarts } from './refused-starts.js'
import {
  CLICKHOUSE_PASSWORD,
  GROUP_RIGHTS,
  KAFKA_PASSWORD,
  PREFIX,
  REDIS_PASSWORD,
  REDIS_RIGHTS,
  SecuredServers,
  TOPIC_RIGHTS,
  topicRight,
  USER,
} from './secured-servers.js'

const MECHANISMS = ['plain', 'scram-sha-256', 'scram-sha-512'] as const
/** ALTER_CONFIGS is only needed to update the settings of existing topics. */
const RIGHTS_TO_OPEN = TOPIC_RIGHTS.filter((each) => each !== 'ALTER_CONFIGS')
const START_MS = 240_000
const TEST_TIMEOUT_MS = 240_000

describeWith(
  'kafka',
  'redis-server',
  'clickhouse',
)('servers that require credentials', () => {
  let servers: SecuredServers
  let pem: { ca: string; cert: string; key: string }

  beforeAll(async () => {
    servers = await SecuredServers.start()
    const paths = [servers.authority.certFile, servers.client.cert, servers.client.key]
    const [ca = '', cert = '', key = ''] = await Promise.all(paths.map((path) => readFile(path, 'utf8')))
    pem = { ca, cert, key }
  }, START_MS)
  afterAll(() => servers.dispose())

  function sasl(mechanism: (typeof MECHANISMS)[number]) {
    return { mechanism, username: USER, password: KAFKA_PASSWORD }
  }

  it('are documented with the rights that these suites use', async () => {
    const docs = await readFile('docs/distributed.md', 'utf8')
    expect(docs).toContain(REDIS_RIGHTS)
    const operations = [...docs.matchAll(/--operation (\w+)/g)].map(([, name = '']) => name)
    const rights = operations.map((name) => name.replace(/(?<=.)[A-Z]/g, '_$&').toUpperCase())
    expect(rights).toEqual([...TOPIC_RIGHTS, ...GROUP_RIGHTS])
  })

  describe('a Kafka log', () => {
    async function verifyCarriesRecords(options: Partial<KafkaEventLogOptions>) {
      const faults: string[] = []
      const onError = (error: unknown) => faults.push(String(error))
      const topicPrefix = `${PREFIX}${randomUUID()}.`
      const log = await openKafkaEventLog(logOptions({ topicPrefix, onError, ...options }))
      const arrivals = new Arrivals()
      const consumer = await log.consume(consumerOf(arrivals, { onError }))
      await appendTo(log, 1, 'carried')
      await arrivals.until(() => arrivals.count >= 1)
      await consumer.stop()
      await log.close()
      // A broker that has just created the groups' topic may answer so for a moment.
      expect(faults.filter((fault) => !fault.includes('coordinator is loading'))).toEqual([])
    }

    it.each(MECHANISMS)('carries records with %s over an open connection', (mechanism) =>
      verifyCarriesRecords({ brokers: [servers.kafka.secured.sasl], sasl: sasl(mechanism) }),
    )

    it.each(MECHANISMS)('carries records with %s over TLS', (mechanism) =>
      verifyCarriesRecords({
        brokers: [servers.kafka.secured.saslTls],
        sasl: sasl(mechanism),
        tls: { ca: pem.ca, cert: null, key: null },
      }),
    )

    it("carries records with a client's certificate", () =>
      verifyCarriesRecords({ brokers: [servers.kafka.secured.mutualTls], tls: pem }))

    it.each(RIGHTS_TO_OPEN)(
      'can not be opened without the right %s, and the error names the list of rights',
      async (missing) => {
        const topicPrefix = `without-${missing}.`
        const others = RIGHTS_TO_OPEN.filter((each) => each !== missing)
        await servers.allowInKafka(...others.map((each) => topicRight(each, topicPrefix)))
        const options = { topicPrefix, brokers: [servers.kafka.secured.sasl], sasl: sasl('scram-sha-512') }
        await expect(openKafkaEventLog(logOptions(options))).rejects.toThrow(
          /user mayfly lacks a permission listed in docs\/distributed\.md/,
        )
      },
    )
  })

  describe('a ClickHouse', () => {
    const right = (): ServerAddress => ({
      url: servers.clickhouse.url,
      database: 'mayfly',
      username: USER,
      password: CLICKHOUSE_PASSWORD,
      ca: pem.ca,
    })

    it.each<{ wrong: string; address: () => Partial<ServerAddress>; says: RegExp }>([
      {
        wrong: 'password',
        address: () => ({ password: 'a-wrong-secret' }),
        says: /the user or password is wrong: check CLICKHOUSE_USERNAME and CLICKHOUSE_PASSWORD$/,
      },
      {
        wrong: 'authority',
        address: () => ({ ca: null }),
        says: /authority that is not trusted: .* CLICKHOUSE_TLS_CA$/,
      },
      {
        wrong: 'name of its host',
        address: () => ({ url: right().url.replace('127.0.0.1', 'localhost') }),
        says: /for another host: write in CLICKHOUSE_URL/,
      },
      {
        wrong: 'http://',
        address: () => ({ url: right().url.replace('https:', 'http:') }),
        says: /does this port require TLS\? Check CLICKHOUSE_URL$/,
      },
      {
        wrong: 'https://',
        address: () => ({ url: clickhouseUrl().replace('http:', 'https:') }),
        says: /does this port use TLS\? Check CLICKHOUSE_URL$/,
      },
    ])('with a wrong $wrong is reported with the setting to check', async ({ address, says }) => {
      const usage = serverUsage({ ...right(), ...address() })
      try {
        const said: unknown = await usage.prepare().catch((error: unknown) => error)
        expect(said).toMatchObject({
          name: 'UsageUnavailableError',
          message: expect.stringMatching(says) as unknown,
        })
        expect((said as Error).message).not.toContain('secret')
      } finally {
        await usage.close()
      }
    })
  })

  it(
    'that are configured wrongly end the start, and the error names the variable',
    () => verifyRefusedStarts(servers),
    START_MS,
  )

  describe('roles that log in over TLS, with only the rights that they need', () => {
    let deployment: Deployment

    beforeAll(async () => {
      deployment = await Deployment.start({ hasAnalytics: true, env: servers.settings() })
    }, START_MS)
    afterAll(() => deployment.dispose())

    it(
      'deliver mail, also after a restart',
      async () => {
        const { target } = deployment
        const inbox = await createInbox(target)
        await send(target, inbox.address, mail('first'))
        await messagesOf(target, inbox.id, 1)
        expect(await Promise.all(ROLES.map((role) => deployment.restart(role, 'SIGTERM')))).toEqual([
          0, 0, 0, 0,
        ])
        await send(target, inbox.address, mail('second'))
        const messages = await messagesOf(target, inbox.id, 2)
        expect(messages.map(({ subject }) => subject)).toEqual(['first', 'second'])
        await untilCounted(
          () => usageOf(target),
          ([all]) => all?.mails === 2,
        )
        const webhook = await registerWebhook(target, `/v1/inboxes/${inbox.id}/webhooks`)
        expect((await call(target, 'GET', `/v1/inboxes/${inbox.id}/webhooks`)).status).toBe(200)
        expect((await call(target, 'DELETE', `/v1/webhooks/${webhook.id}`)).status).toBe(200)
        await call(target, 'DELETE', `/v1/inboxes/${inbox.id}`)
        const headers = { 'idempotency-key': 'kept', 'mayfly-inbox-password': 'wrong' }
        const body = { password_protected: true }
        for (let sent = 0; sent < 2; sent += 1) {
          const { status, body: made } = await call<InboxJson>(target, 'POST', '/v1/inboxes', {
            body,
            headers,
          })
          const guessed = await call(target, 'GET', `/v1/inboxes/${made.id}/messages`, { headers })
          expect([status, guessed.status]).toEqual([201, 403])
        }
        expect(await servers.refusedByRedis()).toEqual([])
        expect(deployment.output()).not.toContain('AUTHORIZATION_FAILED')
      },
      TEST_TIMEOUT_MS,
    )

    it(
      'refuse requests while their credentials are revoked, and continue once they are restored',
      async () => {
        const { target } = deployment
        const create = () => call<{ code?: string }>(target, 'POST', '/v1/inboxes')
        const codeOfMail = () =>
          send(target, inbox.address, mail('kept')).then(
            () => 250,
            (error: unknown) => (error as { responseCode?: number }).responseCode,
          )
        const refusesAll = async (code: string) =>
          (await create()).body.code === code && (await codeOfMail()) === 451
        const takesAll = async () => (await create()).status === 201 && (await codeOfMail()) === 250
        const inbox = await createInbox(target)

        await servers.forbidInRedis()
        await until('all to be refused', () => refusesAll('read-model-unavailable'), 30_000)
        await until('roles to have tried the password', () => deployment.output().includes('WRONGPASS'))
        await servers.allowInRedis()
        await until('all to be taken', takesAll, 30_000)

        await servers.kafka.setPassword(USER, null)
        await until('all to be refused', () => refusesAll('log-unavailable'), 60_000)
        await servers.kafka.setPassword(USER, KAFKA_PASSWORD)
        await until('all to be taken', takesAll, 60_000)
        await messagesOf(target, inbox.id, 2)
        for (const secret of [KAFKA_PASSWORD, REDIS_PASSWORD, CLICKHOUSE_PASSWORD])
          expect(deployment.output()).not.toContain(secret)
      },
      TEST_TIMEOUT_MS,
    )
  })
})
