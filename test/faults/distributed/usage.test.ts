import type { ClickHouseClient } from '@clickhouse/client'
import { KafkaEventLog } from '#libs/engines/distributed/kafka/kafka-event-log.js'
import { logOptions } from '#libs/engines/distributed/kafka/kafka-log-harness.contract.js'
import { serverClient } from '#libs/engines/clickhouse/clients.js'
import { startClickHouse, type ClickHouseServer } from '#test/harness/clickhouse.js'
import { call } from '#test/harness/client.js'
import { describeOn } from '#test/harness/servers.js'
import { until } from '#test/harness/until.js'
import { countedInTables, countedOnLog, summedInTables, sumsOf } from '../counted.js'
import { Deployment, type Role } from './deployment.js'
import { IS_LONG } from './long.js'
import { Trial } from './trial.js'

const ROUNDS = IS_LONG ? 5 : 1
const TRIAL_MS = 180_000
const COUNTED_WITHIN_MS = 60_000
/** What a request or a mail cost is on the log after that, by a good deal. */
const TOLD_WITHIN_MS = 2_000
/** Of a consumer that is not heard of: its partitions then go to others. */
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
  let log: KafkaEventLog
  let client: ClickHouseClient

  beforeAll(async () => {
    clickhouse = await startClickHouse()
    deployment = await Deployment.start({
      hasAnalytics: true,
      env: { CLICKHOUSE_URL: clickhouse.url, CLICKHOUSE_DATABASE: DATABASE },
    })
    const { topicPrefix } = deployment
    log = await KafkaEventLog.open(logOptions({ topicPrefix, partitions: PARTITIONS }))
    const address = { url: clickhouse.url, database: DATABASE, username: 'default', password: '', ca: null }
    client = serverClient(address)
  }, TRIAL_MS)

  afterAll(async () => {
    await client.close()
    await log.close()
    await deployment.dispose()
    await clickhouse.dispose()
  })

  /** Once the load is over: what the log has, and the tables, to the last one. */
  async function mustCountWhatTheLogHas(): Promise<void> {
    let [onLog, since] = [await countedOnLog(log), Date.now()]
    await until(
      'the tables to have what the log has, to which nothing is added any more',
      async () => {
        const now = await countedOnLog(log)
        if (sumOf(now) !== sumOf(onLog)) [onLog, since] = [now, Date.now()]
        const counted = await countedInTables(client).catch(() => ({}))
        return Date.now() - since > TOLD_WITHIN_MS && sumOf(counted) >= sumOf(onLog)
      },
      COUNTED_WITHIN_MS,
    )
    expect(await countedInTables(client)).toEqual(onLog)
    expect(await summedInTables(client)).toEqual(Array(3).fill(sumsOf(onLog)))
  }

  it.each<Role>(['analytics', 'api', 'smtp', 'projector'])(
    '%s is killed: everything on the log is counted once',
    async (role) => {
      const trial = await Trial.begin(deployment)
      for (let round = 0; round < ROUNDS; round += 1) {
        await deployment.replace(role, 'SIGKILL')
        await trial.goesOn()
      }
      await trial.end()
      await mustCountWhatTheLogHas()
    },
    TRIAL_MS,
  )

  it(
    'ClickHouse is killed, and away for a while: what happened meanwhile is counted once it is back',
    async () => {
      const trial = await Trial.begin(deployment)
      await clickhouse.kill('SIGKILL')
      await trial.goesOn()
      const { status, body } = await call<{ code: string }>(deployment.target, 'GET', '/v1/usage')
      expect([status, body.code]).toEqual([503, 'read-model-unavailable'])
      const keys = await call<{ usage: unknown }[]>(deployment.target, 'GET', '/v1/keys')
      expect([keys.status, keys.body[0]?.usage]).toEqual([200, null])
      await clickhouse.startAgain()
      await trial.goesOn()
      await trial.end()
      await mustCountWhatTheLogHas()
    },
    TRIAL_MS,
  )

  it(
    'a sink that hung while another took its partitions over changes nothing when it goes on',
    async () => {
      const trial = await Trial.begin(deployment)
      const hung = deployment.process('analytics')
      const successor = await deployment.add('analytics')
      await trial.goesOn()
      hung.signal('SIGSTOP')
      const stoppedAt = Date.now()
      await until('the session to end', () => Date.now() - stoppedAt > SESSION_MS, SESSION_MS * 2)
      await trial.goesOn()
      hung.signal('SIGCONT')
      await trial.goesOn()
      await trial.end()
      await mustCountWhatTheLogHas()
      expect(await successor.end('SIGTERM')).toBe(0)
    },
    TRIAL_MS,
  )

  it(
    'sinks that come and go count nothing twice',
    async () => {
      const trial = await Trial.begin(deployment)
      for (const signal of ['SIGTERM', 'SIGKILL'] as const) {
        const another = await deployment.add('analytics')
        await trial.goesOn()
        await another.end(signal)
        await trial.goesOn()
      }
      await trial.end()
      await mustCountWhatTheLogHas()
    },
    TRIAL_MS,
  )
})

function sumOf(counts: Readonly<Record<string, number>>): number {
  return Object.values(counts).reduce((sum, count) => sum + count, 0)
}
