import type { ServerResponse } from 'node:http'
import { call, createInbox, mail, only, send } from '#test/harness/client.js'
import { startDns } from '#test/harness/dns.js'
import { startEndpoint, type HttpEndpoint } from '#test/harness/endpoint.js'
import { startMayfly, type EngineName, type Mayfly } from '#test/harness/mayfly.js'
import { describeOn } from '#test/harness/servers.js'
import { until } from '#test/harness/until.js'
import { deliveriesOf, registerWebhook } from '#test/harness/webhooks.js'
import { Ledger } from './ledger.js'
import { startLoad } from './load.js'

const ROUNDS = { embedded: 3, distributed: 1 }
/** Past a lease, on the engine where leases outlive who held them. */
const ROUND_MS = 60_000
const ENOUGH = 60
/** Attempts that may be under way when a process is killed: what became of them nobody knows. */
const UNDER_WAY = 20

describe('webhooks, killed under load on one machine', () => {
  keepEveryPromise('embedded')
})

describeOn(
  'kafka',
  'redis',
  'clickhouse',
)('webhooks, killed under load with every other role on Kafka and Redis', () => {
  keepEveryPromise('distributed')
})

describe('webhooks, killed in the middle of an attempt', () => {
  const running: { dispose: () => void | Promise<void> }[] = []

  afterAll(async () => {
    for (const each of running.toReversed()) await each.dispose()
  })

  it('before the POST and behind it are told after the start, the second again, under its id', async () => {
    const silent = { 'hook.test': { isSilent: true } }
    const dns = await startDns(silent)
    const held: ServerResponse[] = []
    const before = await startEndpoint()
    const behind = await startEndpoint((response) => held.push(response))
    running.push(dns, before, behind)
    const env = { MAYFLY_WEBHOOK_ALLOW_PRIVATE: 'true', MAYFLY_DNS_SERVERS: dns.address }
    let mayfly = await startMayfly({ env, hasWebhooks: true })
    running.push({ dispose: () => mayfly.dispose() })
    const inbox = await createInbox(mayfly)
    const urls = [`http://hook.test:${before.port}/`, behind.url]
    const ids: string[] = []
    for (const url of urls) {
      ids.push((await registerWebhook(mayfly, `/v1/inboxes/${inbox.id}/webhooks`, { url })).id)
    }
    await send(mayfly, inbox.address, mail('told'))
    await until('both attempts', () => dns.asked.includes('A hook.test') && held.length === 1)
    await mayfly.end('SIGKILL')
    expect(before.requests).toHaveLength(0)
    dns.zone = { 'hook.test': { A: ['127.0.0.1'] } }
    mayfly = await mayfly.startAgain()
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
    const [first, again] = behind.requests
    expect(behind.requests).toHaveLength(2)
    expect(again?.headers['webhook-id']).toBe(first?.headers['webhook-id'])
    expect(again?.body).toBe(first?.body)
  })
})

function keepEveryPromise(engine: EngineName): void {
  const rounds = Number(process.env.MAYFLY_FAULT_ROUNDS ?? ROUNDS[engine])
  const ledger = new Ledger()
  let mayfly: Mayfly
  let endpoint: HttpEndpoint

  beforeAll(async () => {
    // Slow enough that attempts are under way at any moment.
    endpoint = await startEndpoint((response) => setTimeout(() => response.end(), 20))
    const env = {
      MAYFLY_WEBHOOK_ALLOW_PRIVATE: 'true',
      MAYFLY_WEBHOOK_CONCURRENCY: String(UNDER_WAY),
      MAYFLY_WEBHOOK_TIMEOUT_MS: '2000',
    }
    mayfly = await startMayfly({ engine, env, hasWebhooks: true })
    for (let count = 0; count < 3; count += 1) {
      const inbox = await createInbox(mayfly)
      ledger.inboxes.set(inbox.id, inbox)
      const body = { url: endpoint.url }
      expect((await call(mayfly, 'POST', `/v1/inboxes/${inbox.id}/webhooks`, { body })).status).toBe(201)
    }
  })
  afterAll(async () => {
    await mayfly.dispose()
    await endpoint.dispose()
  })

  const toldOf = () =>
    endpoint.requests.map(({ body }) => (JSON.parse(body) as { data: { id: string } }).data.id)

  it(
    `are told of every mail that was accepted, over ${rounds} rounds, again only where nobody knew`,
    async () => {
      for (let round = 0; round < rounds; round += 1) {
        const load = startLoad(mayfly, ledger, { senders: 3, creators: 0 })
        const before = endpoint.requests.length
        await until('deliveries under load', () => endpoint.requests.length - before >= ENOUGH)
        await mayfly.end('SIGKILL')
        await load.stop()
        mayfly = await mayfly.startAgain()
      }
      await until(
        'every accepted mail to be told',
        () => {
          const told = new Set(toldOf())
          return [...ledger.accepted.keys()].every((id) => told.has(id))
        },
        ROUND_MS,
      )
      const told = toldOf()
      const ids = endpoint.requests.map(({ headers }) => headers['webhook-id'])
      expect(new Set(ids).size).toBe(new Set(told).size)
      expect(told.length - new Set(told).size).toBeLessThanOrEqual(rounds * UNDER_WAY)
      process.stdout.write(
        `webhook-kill: ${rounds} rounds, ${ledger.accepted.size} mails accepted and told, ` +
          `${told.length - new Set(told).size} told again\n`,
      )
    },
    rounds * ROUND_MS,
  )
}
