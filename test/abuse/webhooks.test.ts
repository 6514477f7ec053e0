import { accountOn } from '#test/harness/accounts.js'
import { createInbox, mail, messagesOf, send, type Target } from '#test/harness/client.js'
import { endpointsOfTests } from '#test/harness/endpoint.js'
import { startMayfly, type Mayfly } from '#test/harness/mayfly.js'
import { until } from '#test/harness/until.js'
import { registerWebhook } from '#test/harness/webhooks.js'

/** As many as an inbox may have. */
const OF_INBOX = 20
/** Of 32 places, one account's new webhooks may have 17, and those of other accounts seven more. */
const PLACES = 32
const OF_ACCOUNT = 17
/** An account has 48 MiB of memory for large bodies, in which a mail counts twice: two of a little over 8 MiB. */
const LARGE_BYTES = 8 * 2 ** 20
const LARGE_AT_ONCE = 2
/** Other accounts with an endpoint that hangs. */
const OTHERS = 5
/** Longer than the suite: who waits for a hanging attempt to end comes too late. */
const TIMEOUT_MS = 60_000
const TOLD_WITHIN_MS = 20_000

describe('one account’s hanging endpoints', () => {
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
    mayfly = await startMayfly({ hasWebhooks: true, env })
    attacker = await accountOn(mayfly)
    other = await accountOn(mayfly)
  })
  afterAll(() => mayfly.dispose())

  async function tell(target: Target, urls: readonly string[], raw = mail('to be told')): Promise<string> {
    const { id, address } = await createInbox(target)
    for (const url of urls) await registerWebhook(target, `/v1/inboxes/${id}/webhooks`, { url })
    await send(target, address, raw)
    return id
  }

  it('leave places to other accounts’ new webhooks', async () => {
    let countHeld = 0
    const hanging = await endpoints.start(() => (countHeld += 1))
    const good = await endpoints.start()
    const urls = Array.from({ length: OF_INBOX }, (_, n) => `${hanging.url}?n=${n}`)
    for (let inboxes = 0; inboxes < 3; inboxes += 1) await tell(attacker, urls)
    await until('as many to hang as may', () => countHeld === OF_ACCOUNT)

    for (let n = 0; n < OTHERS; n += 1) await tell(await accountOn(mayfly), [hanging.url])
    await until('those of others to hang', () => countHeld === OF_ACCOUNT + OTHERS, TOLD_WITHIN_MS)
    await tell(other, [good.url])
    await until('the other to be told', () => good.requests.length === 1, TOLD_WITHIN_MS)
    expect(countHeld).toBe(OF_ACCOUNT + OTHERS)
  })

  it('hold little memory for large mails', async () => {
    let countHeld = 0
    const hanging = await endpoints.start(() => (countHeld += 1))
    const good = await endpoints.start()
    const large = mail('large', `${'z'.repeat(70)}\r\n`.repeat(LARGE_BYTES / 72))
    const [attacker, other] = [await accountOn(mayfly), await accountOn(mayfly)]
    for (let n = 0; n < 2 * LARGE_AT_ONCE; n += 1) {
      const id = await tell(attacker, [hanging.url], large)
      await messagesOf(attacker, id, 1)
    }
    await tell(other, [good.url], large)
    await until('the other to be told', () => good.requests.length === 1, TOLD_WITHIN_MS)
    expect(countHeld).toBe(LARGE_AT_ONCE)
  })
})
