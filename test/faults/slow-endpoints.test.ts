import type { ServerResponse } from 'node:http'
import { createInbox, mail, send } from '#test/harness/client.js'
import { startEndpoint, startTcpEndpoint, type Endpoint, type HttpEndpoint } from '#test/harness/endpoint.js'
import { startMayfly, type Mayfly } from '#test/harness/mayfly.js'
import { until } from '#test/harness/until.js'
import { deliveriesOf, registerWebhook } from '#test/harness/webhooks.js'

/** As many as an inbox may have. */
const OF_INBOX = 20
const GOOD_INBOXES = 5
/** An attempt may take three times as long: who waits for one comes too late. */
const GOOD_WITHIN_MS = 20_000
const TIMEOUT_MS = 60_000
/** As many as a webhook may have under way. */
const MAILS = 10
/** More than a few of them under way, where one attempt is what a new one has. */
const ENOUGH_HELD = 5 * OF_INBOX
/** Past which an answer is slow. A few of them in a row leave a webhook one attempt at a time. */
const SLOW_MS = 1_000

/** An endpoint that answers 200, at once or when it is told to. */
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

describe('a dead endpoint, one that drips and twenty that are slow do not delay a hundred good ones', () => {
  let mayfly: Mayfly
  let bad: string[]
  let fine: string[]
  const endpoints: Endpoint[] = []
  const good: HttpEndpoint[] = []
  let slowly: HttpEndpoint[]
  /** The webhook of each endpoint, by its URL. */
  const webhookIds = new Map<string, string>()
  const slow = Array.from({ length: OF_INBOX }, () => new SlowEndpoint())

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
    for (let n = 0; n < GOOD_INBOXES * OF_INBOX; n += 1) good.push(await startEndpoint())
    endpoints.push(...good)
    const groups = Array.from({ length: GOOD_INBOXES }, (_, n) =>
      good.slice(n * OF_INBOX, (n + 1) * OF_INBOX),
    )
    bad = await Promise.all([[dead, dripping], slowly].map(toldTo))
    fine = await Promise.all(groups.map(toldTo))
  })
  afterAll(async () => {
    await mayfly.dispose()
    await Promise.all(endpoints.map((endpoint) => endpoint.dispose()))
  })

  /** The address of an inbox that they are told of. */
  async function toldTo(listening: readonly Endpoint[]): Promise<string> {
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

  /** Whether all answers but those held are on the log, so that the process knows of them. */
  async function areAllCounted(): Promise<boolean> {
    const counted = slowly.map(async ({ url, requests }, index) => {
      const deliveries = await deliveriesOf(mayfly, webhookIds.get(url) ?? '', '?state=succeeded&limit=100')
      return deliveries.length === requests.length - (slow[index]?.countHeld ?? 0)
    })
    return (await Promise.all(counted)).every(Boolean)
  }

  const areTold = (count: number) => slowly.every(({ requests }) => requests.length === count)

  /** Each good one is told of all mails, while the slow ones hold at least so many attempts up. */
  async function goodAreTold(least: number): Promise<void> {
    const before = good.map(({ requests }) => requests.length)
    await sendMails(fine)
    await until(
      'the good ones to be told',
      () => good.every(({ requests }, index) => requests.length - (before[index] ?? 0) >= MAILS),
      GOOD_WITHIN_MS,
    )
    expect(held()).toBeGreaterThanOrEqual(least)
  }

  it('when they are new', async () => {
    await sendMails(bad)
    await until('each slow one to be told', () => slow.every(({ countHeld }) => countHeld > 0))
    await goodAreTold(OF_INBOX)
  })

  it('when they were quick, and all of a sudden hang', async () => {
    for (const endpoint of slow) endpoint.isHolding = false
    for (const endpoint of slow) endpoint.answerHeld()
    await sendMails(bad)
    await until('the slow ones to be told', () => areTold(2 * MAILS))
    for (const endpoint of slow) endpoint.isHolding = true
    await sendMails(bad)
    await until('them to hang', () => held() > ENOUGH_HELD)
    await goodAreTold(ENOUGH_HELD)
  })

  it('when they have long been slow', async () => {
    await until('them to have answered all mails slowly', () => {
      for (const endpoint of slow) endpoint.answerSlowly()
      return areTold(3 * MAILS) && held() === 0
    })
    await until('the answers to be counted', areAllCounted)
    await sendMails(bad)
    await until('each slow one to be told', () => slow.every(({ countHeld }) => countHeld > 0))
    await goodAreTold(OF_INBOX)
    expect(held()).toBe(OF_INBOX)
  })
})
