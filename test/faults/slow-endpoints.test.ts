import type { ServerResponse } from 'node:http'
import { createInbox, mail, send } from '#test/harness/client.js'
import { startEndpoint, startTcpEndpoint, type Endpoint, type HttpEndpoint } from '#test/harness/endpoint.js'
import { startMayfly, type Mayfly } from '#test/harness/mayfly.js'
import { until } from '#test/harness/until.js'
import { deliveriesOf, registerWebhook } from '#test/harness/webhooks.js'

/** The maximum of an inbox. */
const WEBHOOKS_PER_INBOX = 20
const GOOD_INBOXES = 5
/** A third of the timeout: a delivery that waits for a hanging attempt is too late. */
const GOOD_WITHIN_MS = 20_000
const TIMEOUT_MS = 60_000
/** The maximum of concurrent attempts of a webhook. */
const MAILS = 10
/** Many concurrent attempts. A new webhook has one. */
const ENOUGH_HELD = 5 * WEBHOOKS_PER_INBOX
/** Answers that take longer are slow. After a few of them in a row, a webhook gets one attempt at a time. */
const SLOW_MS = 1_000

/** An endpoint that answers 200, at once or on request. */
class SlowEndpoint {
  isHolding = true
  private readonly held: { response: ServerResponse; sinceMs: number }[] = []

  readonly answer = (response: ServerResponse): void => {
    if (this.isHolding) this.held.push({ response, sinceMs: performance.now() })
    else response.end()
  }

  get countHeld(): number {
    return this.held.length
  }

  answerHeld(): void {
    for (const { response } of this.held.splice(0)) response.end()
  }

  answerSlowly(): void {
    const some = this.held.filter(({ sinceMs }) => performance.now() - sinceMs > SLOW_MS)
    this.held.splice(0, some.length)
    for (const { response } of some) response.end()
  }
}

describe('a dead endpoint, a dripping one and twenty slow ones do not delay a hundred good ones', () => {
  let mayfly: Mayfly
  let bad: string[]
  let fine: string[]
  const endpoints: Endpoint[] = []
  const good: HttpEndpoint[] = []
  let slowly: HttpEndpoint[]
  /** The webhook of each endpoint, by its URL. */
  const webhookIds = new Map<string, string>()
  const slow = Array.from({ length: WEBHOOKS_PER_INBOX }, () => new SlowEndpoint())

  beforeAll(async () => {
    const env = { MAYFLY_WEBHOOK_ALLOW_PRIVATE: 'true', MAYFLY_WEBHOOK_TIMEOUT_MS: String(TIMEOUT_MS) }
    mayfly = await startMayfly({ hasWebhooks: true, env })
    const dead = await startTcpEndpoint((socket) => socket.resume())
    const dripping = await startTcpEndpoint((socket) => {
      socket.resume().write('HTTP/1.1 200 OK\r\nx: ')
      const timer = setInterval(() => socket.write('y'), 100)
      socket.on('close', () => clearInterval(timer))
    })
    slowly = await Promise.all(slow.map(({ answer }) => startEndpoint(answer)))
    endpoints.push(dead, dripping, ...slowly)
    for (let n = 0; n < GOOD_INBOXES * WEBHOOKS_PER_INBOX; n += 1) good.push(await startEndpoint())
    endpoints.push(...good)
    const groups = Array.from({ length: GOOD_INBOXES }, (_, n) =>
      good.slice(n * WEBHOOKS_PER_INBOX, (n + 1) * WEBHOOKS_PER_INBOX),
    )
    bad = await Promise.all([[dead, dripping], slowly].map(addressWithWebhooks))
    fine = await Promise.all(groups.map(addressWithWebhooks))
  })
  afterAll(async () => {
    await mayfly.dispose()
    await Promise.all(endpoints.map((endpoint) => endpoint.dispose()))
  })

  /** Creates an inbox with webhooks to the endpoints. Resolves with its address. */
  async function addressWithWebhooks(listening: readonly Endpoint[]): Promise<string> {
    const { id, address } = await createInbox(mayfly)
    for (const { url } of listening) {
      const webhook = await registerWebhook(mayfly, `/v1/inboxes/${id}/webhooks`, { url })
      webhookIds.set(url, webhook.id)
    }
    return address
  }

  async function sendMails(addresses: string[], count = MAILS): Promise<void> {
    for (let n = 0; n < count; n += 1) await send(mayfly, addresses, mail(`mail ${n}`))
  }

  const held = () => slow.reduce((sum, { countHeld }) => sum + countHeld, 0)

  /** Whether the outcomes of all answered attempts are on the log. */
  async function areOutcomesRecorded(): Promise<boolean> {
    const counted = slowly.map(async ({ url, requests }, index) => {
      const deliveries = await deliveriesOf(mayfly, webhookIds.get(url) ?? '', '?state=succeeded&limit=100')
      return deliveries.length === requests.length - (slow[index]?.countHeld ?? 0)
    })
    return (await Promise.all(counted)).every(Boolean)
  }

  const haveReceived = (count: number) => slowly.every(({ requests }) => requests.length === count)

  /** Expects that each good endpoint gets all mails, while the slow ones hold at least that many attempts. */
  async function verifyGoodDeliveries(least: number): Promise<void> {
    const before = good.map(({ requests }) => requests.length)
    await sendMails(fine)
    await until(
      'the good ones to receive mail',
      () => good.every(({ requests }, index) => requests.length - (before[index] ?? 0) >= MAILS),
      GOOD_WITHIN_MS,
    )
    expect(held()).toBeGreaterThanOrEqual(least)
  }

  it('when they are new', async () => {
    await sendMails(bad)
    await until('each slow one to receive mail', () => slow.every(({ countHeld }) => countHeld > 0))
    await verifyGoodDeliveries(WEBHOOKS_PER_INBOX)
  })

  it('when they were quick and suddenly hang', async () => {
    for (const endpoint of slow) endpoint.isHolding = false
    for (const endpoint of slow) endpoint.answerHeld()
    await sendMails(bad)
    await until('the slow ones to receive mail', () => haveReceived(2 * MAILS))
    for (const endpoint of slow) endpoint.isHolding = true
    await sendMails(bad)
    await until('them to hang', () => held() > ENOUGH_HELD)
    await verifyGoodDeliveries(ENOUGH_HELD)
  })

  it('when they have been slow for long', async () => {
    await until(
      'them to have answered all mails slowly',
      () => {
        for (const endpoint of slow) endpoint.answerSlowly()
        return haveReceived(3 * MAILS) && held() === 0
      },
      90_000,
    )
    await until('the answers to be counted', areOutcomesRecorded)
    await sendMails(bad)
    await until('each slow one to receive mail', () => slow.every(({ countHeld }) => countHeld > 0))
    await verifyGoodDeliveries(WEBHOOKS_PER_INBOX)
    expect(held()).toBe(WEBHOOKS_PER_INBOX)
  })
})
