import type { ClickHouseClient } from '@clickhouse/client'
import { openKafkaEventLog } from '#libs/engines/distributed/kafka/kafka-event-log.js'
import type { EventLog } from '#libs/ports/event-log/event-log.js'
import { logOptions } from '#libs/engines/distributed/kafka/kafka-log-harness.contract.js'
import { serverClient } from '#libs/engines/clickhouse/clients.js'
import { startClickHouse, type ClickHouseServer } from '#test/harness/clickhouse.js'
import { call } from '#test/harness/client.js'
import { describeOn } from '#test/harness/servers.js'
import { until } from '#test/harness/until.js'
import { rowCounts, eventCountsOnLog, figureTotals, expectedTotals } from '../usage-counts.js'
import { Deployment, IS_LONG, type Role } from './deployment.js'
import { LoadTest } from './load-test.js'

const ROUNDS = IS_LONG ? 5 : 1
const TEST_TIMEOUT_MS = 180_000
const COUNTED_WITHIN_MS = 60_000
/** Much longer than it takes until the usage of a request or mail is on the log. */
const RECORDED_WITHIN_MS = 5_000
/** A consumer without heartbeats for this time loses its partitions to others. */
const SESSION_MS = 12_000
const PARTITIONS = 4
const DATABASE = 'mayfly'

describeOn(
  'kafka',
  'redis',
  'clickhouse',
)('usage, with parts killed or hung under load', () => {
  let clickhouse: ClickHouseServer
  let deployment: Deployment
  let log: EventLog
  let client: ClickHouseClient

  beforeAll(async () => {
    clickhouse = await startClickHouse()
    deployment = await Deployment.start({
      hasAnalytics: true,
      env: { CLICKHOUSE_URL: clickhouse.url, CLICKHOUSE_DATABASE: DATABASE },
    })
    const { topicPrefix } = deployment
    log = await openKafkaEventLog(logOptions({ topicPrefix, partitions: PARTITIONS }))
    const address = { url: clickhouse.url, database: DATABASE, username: 'default', password: '', ca: null }
    client = serverClient(address)
  }, TEST_TIMEOUT_MS)

  afterAll(async () => {
    await client.close()
    await log.close()
    await deployment.dispose()
    await clickhouse.dispose()
  })

  /** After the load has stopped: expects that the tables have exactly the events of the log. */
  async function verifyCounts(): Promise<void> {
    let [onLog, since] = [await eventCountsOnLog(log), Date.now()]
    await until(
      'the tables to have what the log has, to which nothing is added any more',
      async () => {
        const counted = await rowCounts(client).catch(() => ({}))
        const now = await eventCountsOnLog(log)
        if (sumOf(now) !== sumOf(onLog)) [onLog, since] = [now, Date.now()]
        return Date.now() - since > RECORDED_WITHIN_MS && sumOf(counted) >= sumOf(onLog)
      },
      COUNTED_WITHIN_MS,
    )
    expect(await rowCounts(client)).toEqual(onLog)
    expect(await figureTotals(client)).toEqual(Array(3).fill(expectedTotals(onLog)))
  }

  it.each<Role>(['analytics', 'api', 'smtp', 'projector'])(
    '%s is killed: everything on the log is counted once',
    async (role) => {
      const loadTest = await LoadTest.start(deployment)
      for (let round = 0; round < ROUNDS; round += 1) {
        await deployment.restart(role, 'SIGKILL')
        await loadTest.untilProgress()
      }
      await loadTest.stopAndVerify()
      await verifyCounts()
    },
    TEST_TIMEOUT_MS,
  )

  it(
    'ClickHouse is killed, and down for a while: usage of that time is counted once it is back',
    async () => {
      const loadTest = await LoadTest.start(deployment)
      await clickhouse.kill('SIGKILL')
      await loadTest.untilProgress()
      const { status, body } = await call<{ code: string }>(deployment.target, 'GET', '/v1/usage')
      expect([status, body.code]).toEqual([503, 'read-model-unavailable'])
      const keys = await call<{ usage: unknown }[]>(deployment.target, 'GET', '/v1/keys')
      expect([keys.status, keys.body[0]?.usage]).toEqual([200, null])
      await clickhouse.restart()
      await loadTest.untilProgress()
      await loadTest.stopAndVerify()
      await verifyCounts()
    },
    TEST_TIMEOUT_MS,
  )

  it(
    'a sink that hung while another took its partitions over changes nothing when it continues',
    async () => {
      const loadTest = await LoadTest.start(deployment)
      const hung = deployment.process('analytics')
      const successor = await deployment.add('analytics')
      await loadTest.untilProgress()
      hung.signal('SIGSTOP')
      const stoppedAt = Date.now()
      await until('the session to end', () => Date.now() - stoppedAt > SESSION_MS, SESSION_MS * 2)
      await loadTest.untilProgress()
      hung.signal('SIGCONT')
      await loadTest.untilProgress()
      await loadTest.stopAndVerify()
      await verifyCounts()
      expect(await successor.end('SIGTERM')).toBe(0)
    },
    TEST_TIMEOUT_MS,
  )

  it(
    'sinks that start and stop count nothing twice',
    async () => {
      const loadTest = await LoadTest.start(deployment)
      await loadTest.startAndEndAnother('analytics')
      await loadTest.stopAndVerify()
      await verifyCounts()
    },
    TEST_TIMEOUT_MS,
  )
})

function sumOf(counts: Readonly<Record<string, number>>): number {
  return Object.values(counts).reduce((sum, count) => sum + count, 0)
}
