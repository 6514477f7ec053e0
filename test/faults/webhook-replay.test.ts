import { call, createInbox, mail, messagesOf, send, type InboxJson } from '#test/harness/client.js'
import { startEndpoint, type HttpEndpoint } from '#test/harness/endpoint.js'
import { startMayfly, type EngineName, type Mayfly } from '#test/harness/mayfly.js'
import { describeOn } from '#test/harness/servers.js'
import { until } from '#test/harness/until.js'
import { registerWebhook } from '#test/harness/webhooks.js'

const KILLS = { embedded: 3, distributed: 1 }
const INBOXES = 3
const MAILS_EACH = 60
const ENOUGH = 20
/** Maximum of attempts in progress when a process is killed, whose outcome is unknown. */
const IN_PROGRESS = 20
/** Longer than a lease: on the distributed engine, leases outlive the process. */
const ROUND_MS = 60_000

interface ReplayJson {
  id: string
  state: string
  requested: number
  done: number
}

it('a replay requests no more deliveries per second than allowed, and delays no shutdown', async () => {
  const endpoint = await startEndpoint()
  const env = { MAYFLY_WEBHOOK_ALLOW_PRIVATE: 'true', MAYFLY_WEBHOOK_REPLAY_RATE: '1' }
  const mayfly = await startMayfly({ engine: 'embedded', env, hasWebhooks: true })
  const { id, address } = await createInbox(mayfly)
  const subjects = Array.from({ length: ENOUGH }, (_, index) => `mail ${index}`)
  for (const subject of subjects) await send(mayfly, address, mail(subject))
  await messagesOf(mayfly, id, ENOUGH)
  const start = { url: endpoint.url, start_from: 'beginning' }
  await registerWebhook(mayfly, `/v1/inboxes/${id}/webhooks`, start)
  await until('the replay to run', () => endpoint.requests.length >= 2, ROUND_MS)
  expect(await mayfly.end('SIGTERM')).toBe(0)
  expect(endpoint.requests.length).toBeLessThan(ENOUGH)
  await mayfly.dispose()
  await endpoint.dispose()
})

describe('a replay, killed on one machine', () => {
  resume('embedded')
})

describeOn(
  'kafka',
  'redis',
  'clickhouse',
)('a replay, killed with every other role on Kafka and Redis', () => {
  resume('distributed')
})

function resume(engine: EngineName): void {
  const kills = Number(process.env.MAYFLY_FAULT_ROUNDS ?? KILLS[engine])
  let mayfly: Mayfly
  let endpoint: HttpEndpoint

  beforeAll(async () => {
    endpoint = await startEndpoint()
    const env = {
      MAYFLY_WEBHOOK_ALLOW_PRIVATE: 'true',
      MAYFLY_WEBHOOK_REPLAY_RATE: '60',
      MAYFLY_WEBHOOK_CONCURRENCY: String(IN_PROGRESS),
      MAYFLY_WEBHOOK_TIMEOUT_MS: '5000',
    }
    mayfly = await startMayfly({ engine, env, hasWebhooks: true })
  })
  afterAll(async () => {
    await mayfly.dispose()
    await endpoint.dispose()
  })

  it(
    'continues from its position, and requests no delivery twice',
    async () => {
      const inboxes: InboxJson[] = []
      for (let count = 0; count < INBOXES; count += 1) inboxes.push(await createInbox(mayfly))
      await Promise.all(
        inboxes.map(async ({ id, address }) => {
          for (let n = 0; n < MAILS_EACH; n += 1) await send(mayfly, address, mail(`${id} ${n}`))
          await messagesOf(mayfly, id, MAILS_EACH)
        }),
      )
      const { id } = await registerWebhook(mayfly, '/v1/webhooks', { url: endpoint.url })
      const body = { from: '2020-01-01T00:00:00Z', to: '2999-01-01T00:00:00Z' }
      const asked = await call<ReplayJson>(mayfly, 'POST', `/v1/webhooks/${id}/replays`, { body })
      expect(asked.status).toBe(202)
      const path = `/v1/webhooks/${id}/replays/${asked.body.id}`
      for (let round = 0; round < kills; round += 1) {
        // In total, because many may have been requested before the start has finished.
        const enough = (round + 1) * ENOUGH
        await until('the replay to run', () => endpoint.requests.length >= enough, ROUND_MS)
        await mayfly.end('SIGKILL')
        mayfly = await mayfly.restart()
      }
      const look = async () => (await call<ReplayJson>(mayfly, 'GET', path)).body
      await until('the replay to be through', async () => (await look()).state === 'completed', ROUND_MS)
      const all = INBOXES * MAILS_EACH
      expect(await look()).toMatchObject({ requested: all, done: all })
      const ids = endpoint.requests.map(({ headers }) => headers['webhook-id'])
      expect(new Set(ids).size).toBe(all)
      expect(ids.length - all).toBeLessThanOrEqual(kills * IN_PROGRESS)
    },
    (kills + 1) * ROUND_MS,
  )
}
