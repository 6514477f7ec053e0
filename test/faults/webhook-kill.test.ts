import type { ServerResponse } from 'node:http'
import { call, createInbox, mail, only, send } from '#test/harness/client.js'
import { startDns } from '#test/harness/dns.js'
import { startEndpoint, type HttpEndpoint } from '#test/harness/endpoint.js'
import { startMayfly, type EngineName, type Mayfly } from '#test/harness/mayfly.js'
import { describeOn } from '#test/harness/servers.js'
import { until } from '#test/harness/until.js'
import { deliveriesOf, registerWebhook } from '#test/harness/webhooks.js'
import { AcknowledgedWrites } from './acknowledged-writes.js'
import { startLoad } from './load.js'

const ROUNDS = { embedded: 3, distributed: 1 }
/** Longer than a lease: on the distributed engine, leases outlive the process. */
const ROUND_MS = 60_000
const ENOUGH = 60
/** Maximum of attempts in progress when a process is killed, whose outcome is unknown. */
const IN_PROGRESS = 20

describe('webhooks, killed under load on one machine', () => {
  loseNoDelivery('embedded')
})

describeOn(
  'kafka',
  'redis',
  'clickhouse',
)('webhooks, killed under load with every other role on Kafka and Redis', () => {
  loseNoDelivery('distributed')
})

describe('webhooks, killed in the middle of an attempt', () => {
  const running: { dispose: () => void | Promise<void> }[] = []

  afterAll(async () => {
    for (const each of running.toReversed()) await each.dispose()
  })

  it('before or after the POST make the attempt after the restart, the second one again, with the same id', async () => {
    const silent = { 'hook.test': { isSilent: true } }
    const dns = await startDns(silent)
    const held: ServerResponse[] = []
    const before = await startEndpoint()
    const after = await startEndpoint((response) => held.push(response))
    running.push(dns, before, after)
    const env = { MAYFLY_WEBHOOK_ALLOW_PRIVATE: 'true', MAYFLY_DNS_SERVERS: dns.address }
    let mayfly = await startMayfly({ env, hasWebhooks: true })
    running.push({ dispose: () => mayfly.dispose() })
    const inbox = await createInbox(mayfly)
    const urls = [`http://hook.test:${before.port}/`, after.url]
    const ids: string[] = []
    for (const url of urls) {
      ids.push((await registerWebhook(mayfly, `/v1/inboxes/${inbox.id}/webhooks`, { url })).id)
    }
    await send(mayfly, inbox.address, mail('delivered'))
    await until('both attempts', () => dns.queries.includes('A hook.test') && held.length === 1)
    await mayfly.end('SIGKILL')
    expect(before.requests).toHaveLength(0)
    dns.zone = { 'hook.test': { A: ['127.0.0.1'] } }
    mayfly = await mayfly.restart()
    await until('the second POST again', () => held.length === 2)
    held[1]?.end()
    for (const id of ids) {
      const log = await until('the delivery', async () => {
        const deliveries = await deliveriesOf(mayfly, id)
        return deliveries.every(({ state }) => state === 'succeeded') ? deliveries : null
      })
      expect(only(log).attempts).toMatchObject([{ status: 200, error: null }])
    }
    expect(before.requests).toHaveLength(1)
    const [first, again] = after.requests
    expect(after.requests).toHaveLength(2)
    expect(again?.headers['webhook-id']).toBe(first?.headers['webhook-id'])
    expect(again?.body).toBe(first?.body)
  })
})

function loseNoDelivery(engine: EngineName): void {
  const rounds = Number(process.env.MAYFLY_FAULT_ROUNDS ?? ROUNDS[engine])
  const acknowledged = new AcknowledgedWrites()
  let mayfly: Mayfly
  let endpoint: HttpEndpoint

  beforeAll(async () => {
    // Slow enough that there are always attempts in progress.
    endpoint = await startEndpoint((response) => setTimeout(() => response.end(), 20))
    const env = {
      MAYFLY_WEBHOOK_ALLOW_PRIVATE: 'true',
      MAYFLY_WEBHOOK_CONCURRENCY: String(IN_PROGRESS),
      MAYFLY_WEBHOOK_TIMEOUT_MS: '5000',
    }
    mayfly = await startMayfly({ engine, env, hasWebhooks: true })
    for (let count = 0; count < 3; count += 1) {
      const inbox = await createInbox(mayfly)
      acknowledged.inboxes.set(inbox.id, inbox)
      const body = { url: endpoint.url }
      expect((await call(mayfly, 'POST', `/v1/inboxes/${inbox.id}/webhooks`, { body })).status).toBe(201)
    }
  })
  afterAll(async () => {
    await mayfly.dispose()
    await endpoint.dispose()
  })

  const deliveredIds = () =>
    endpoint.requests.map(({ body }) => (JSON.parse(body) as { data: { id: string } }).data.id)

  it(
    `deliver every accepted mail, over ${rounds} rounds, repeated only if the outcome was unknown`,
    async () => {
      for (let round = 0; round < rounds; round += 1) {
        const load = startLoad(mayfly, acknowledged, { senders: 3, creators: 0 })
        const before = endpoint.requests.length
        await until('deliveries under load', () => endpoint.requests.length - before >= ENOUGH)
        await mayfly.end('SIGKILL')
        await load.stop()
        mayfly = await mayfly.restart()
      }
      await until(
        'every accepted mail to be delivered',
        () => {
          const delivered = new Set(deliveredIds())
          return [...acknowledged.accepted.keys()].every((id) => delivered.has(id))
        },
        ROUND_MS,
      )
      const delivered = deliveredIds()
      const ids = endpoint.requests.map(({ headers }) => headers['webhook-id'])
      expect(new Set(ids).size).toBe(new Set(delivered).size)
      expect(delivered.length - new Set(delivered).size).toBeLessThanOrEqual(rounds * IN_PROGRESS)
      process.stdout.write(
        `webhook-kill: ${rounds} rounds, ${acknowledged.accepted.size} mails accepted and delivered, ` +
          `${delivered.length - new Set(delivered).size} delivered again\n`,
      )
    },
    rounds * ROUND_MS,
  )

  it(
    `announce a quota that was reached just before the kill, over ${rounds} rounds`,
    async () => {
      await registerWebhook(mayfly, '/v1/webhooks', { url: endpoint.url, events: ['quota.reached'] })
      for (let round = 0; round < rounds; round += 1) {
        const limit = acknowledged.inboxes.size + 1
        await call(mayfly, 'PUT', '/v1/quotas/inboxes', { body: { limit } })
        const inbox = await createInbox(mayfly)
        await mayfly.end('SIGKILL')
        acknowledged.inboxes.set(inbox.id, inbox)
        mayfly = await mayfly.restart()
        const announced = await until('the notice', () => {
          const notices = endpoint.requests.filter(({ body }) => isReached(body, limit))
          return notices.length > 0 ? notices : null
        })
        expect(new Set(announced.map(({ headers }) => headers['webhook-id'])).size).toBe(1)
      }
    },
    rounds * ROUND_MS,
  )
}

function isReached(body: string, limit: number): boolean {
  const { type, data } = JSON.parse(body) as { type: string; data: Record<string, unknown> }
  return type === 'quota.reached' && data.limit === limit && data.percent === 100
}
