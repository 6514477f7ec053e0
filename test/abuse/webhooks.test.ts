import { accountOn } from '#test/harness/accounts.js'
import { createInbox, mail, messagesOf, send, type Target } from '#test/harness/client.js'
import { endpointsPerTest } from '#test/harness/endpoint.js'
import { startMayfly, type Mayfly } from '#test/harness/mayfly.js'
import { until } from '#test/harness/until.js'
import { registerWebhook } from '#test/harness/webhooks.js'

/** The maximum of an inbox. */
const WEBHOOKS_PER_INBOX = 20
/** Of 32 attempt slots, the new webhooks of one account get 17, and those of other accounts seven more. */
const SLOTS = 32
const SLOTS_PER_ACCOUNT = 17
/** An account has 48 MiB of memory for large bodies, where a mail counts twice: enough for two of just over 8 MiB. */
const LARGE_BYTES = 8 * 2 ** 20
const LARGE_AT_ONCE = 2
/** Other accounts with an endpoint that hangs. */
const OTHERS = 5
/** Longer than the suite, so that a delivery that waits for a hanging attempt is too late. */
const TIMEOUT_MS = 60_000
const DELIVERED_WITHIN_MS = 20_000

describe('hanging endpoints of one account', () => {
  const endpoints = endpointsPerTest()
  let mayfly: Mayfly
  let attacker: Target
  let other: Target

  beforeAll(async () => {
    const env = {
      MAYFLY_WEBHOOK_ALLOW_PRIVATE: 'true',
      MAYFLY_WEBHOOK_TIMEOUT_MS: String(TIMEOUT_MS),
      MAYFLY_WEBHOOK_CONCURRENCY: String(SLOTS),
    }
    mayfly = await startMayfly({ hasWebhooks: true, env })
    attacker = await accountOn(mayfly)
    other = await accountOn(mayfly)
  })
  afterAll(() => mayfly.dispose())

  async function sendToWebhooks(
    target: Target,
    urls: readonly string[],
    raw = mail('to be delivered'),
  ): Promise<string> {
    const { id, address } = await createInbox(target)
    for (const url of urls) await registerWebhook(target, `/v1/inboxes/${id}/webhooks`, { url })
    await send(target, address, raw)
    return id
  }

  it('leave attempt slots to new webhooks of other accounts', async () => {
    let countHeld = 0
    const hanging = await endpoints.start(() => (countHeld += 1))
    const good = await endpoints.start()
    const urls = Array.from({ length: WEBHOOKS_PER_INBOX }, (_, n) => `${hanging.url}?n=${n}`)
    for (let inboxes = 0; inboxes < 3; inboxes += 1) await sendToWebhooks(attacker, urls)
    await until('as many to hang as may', () => countHeld === SLOTS_PER_ACCOUNT)

    for (let n = 0; n < OTHERS; n += 1) await sendToWebhooks(await accountOn(mayfly), [hanging.url])
    await until(
      'those of others to hang',
      () => countHeld === SLOTS_PER_ACCOUNT + OTHERS,
      DELIVERED_WITHIN_MS,
    )
    await sendToWebhooks(other, [good.url])
    await until('the delivery to the other one', () => good.requests.length === 1, DELIVERED_WITHIN_MS)
    expect(countHeld).toBe(SLOTS_PER_ACCOUNT + OTHERS)
  })

  it('hold little memory for large mails', async () => {
    let countHeld = 0
    const hanging = await endpoints.start(() => (countHeld += 1))
    const good = await endpoints.start()
    const large = mail('large', `${'z'.repeat(70)}\r\n`.repeat(LARGE_BYTES / 72))
    const [attacker, other] = [await accountOn(mayfly), await accountOn(mayfly)]
    for (let n = 0; n < 2 * LARGE_AT_ONCE; n += 1) {
      const id = await sendToWebhooks(attacker, [hanging.url], large)
      await messagesOf(attacker, id, 1)
    }
    await until('deliveries to hang', () => countHeld === LARGE_AT_ONCE, DELIVERED_WITHIN_MS)
    await sendToWebhooks(other, [good.url], large)
    await until('the delivery to the other one', () => good.requests.length === 1, DELIVERED_WITHIN_MS)
    expect(countHeld).toBe(LARGE_AT_ONCE)
  })
})
