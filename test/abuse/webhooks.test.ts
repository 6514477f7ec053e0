import { createInbox, mail, send, type Target } from '#test/harness/client.js'
import { endpointsOfTests } from '#test/harness/endpoint.js'
import { startMayfly, type EngineName, type Mayfly } from '#test/harness/mayfly.js'
import { describeOn } from '#test/harness/servers.js'
import { until } from '#test/harness/until.js'
import { registerWebhook } from '#test/harness/webhooks.js'
import { accountOn } from './accounts.js'

/** As many as an inbox may have. */
const OF_INBOX = 20
/**
 * Of 32 places, one account's new webhooks may have 22: eight are for webhooks that have proved quick, and two for other
 * accounts.
 */
const PLACES = 32
const OF_ACCOUNT = 22
/** Longer than the suite: who waits for a hanging attempt to end comes too late. */
const TIMEOUT_MS = 60_000
const TOLD_WITHIN_MS = 20_000

describe('one account’s hanging endpoints, on one machine', () => {
  delayNoOther('embedded')
})

describeOn(
  'kafka',
  'redis',
  'clickhouse',
)('one account’s hanging endpoints, on Kafka and Redis', () => {
  delayNoOther('distributed')
})

function delayNoOther(engine: EngineName): void {
  const endpoints = endpointsOfTests()
  let mayfly: Mayfly
  let attacker: Target
  let other: Target

  beforeAll(async () => {
    const env = {
      MAYFLY_WEBHOOK_ALLOW_PRIVATE: 'true',
      MAYFLY_WEBHOOK_TIMEOUT_MS: String(TIMEOUT_MS),
      MAYFLY_WEBHOOK_CONCURRENCY: String(PLACES),
    }
    mayfly = await startMayfly({ engine, hasWebhooks: true, env })
    attacker = await accountOn(mayfly)
    other = await accountOn(mayfly)
  })
  afterAll(() => mayfly.dispose())

  it('leave a place to another account’s new webhook', async () => {
    let countHeld = 0
    const hanging = await endpoints.start(() => (countHeld += 1))
    const good = await endpoints.start()
    for (let inboxes = 0; inboxes < 3; inboxes += 1) {
      const { id, address } = await createInbox(attacker)
      for (let n = 0; n < OF_INBOX; n += 1) {
        await registerWebhook(attacker, `/v1/inboxes/${id}/webhooks`, { url: `${hanging.url}?n=${n}` })
      }
      await send(attacker, address, mail('to hang'))
    }
    await until('as many to hang as may', () => countHeld === OF_ACCOUNT)

    const { id, address } = await createInbox(other)
    await registerWebhook(other, `/v1/inboxes/${id}/webhooks`, { url: good.url })
    await send(other, address, mail('to be told'))
    await until('the other to be told', () => good.requests.length === 1, TOLD_WITHIN_MS)
    expect(countHeld).toBe(OF_ACCOUNT)
  })
}
