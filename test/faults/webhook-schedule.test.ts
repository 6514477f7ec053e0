import { freePort } from '#infra/servers/ports.js'
import { call, createInbox, mail, messagesOf, only, send, type InboxJson } from '#test/harness/client.js'
import { startEndpoint, type HttpEndpoint } from '#test/harness/endpoint.js'
import { makeFolder, startWithClock, type MayflyWithClock } from '#test/harness/mayfly-with-clock.js'
import { until } from '#test/harness/until.js'
import { deliveriesOf, registerWebhook, type DeliveryJson, type WebhookJson } from '#test/harness/webhooks.js'

const SECOND_MS = 1_000
const MINUTE_MS = 60 * SECOND_MS
const HOUR_MS = 60 * MINUTE_MS
const DAY_MS = 24 * HOUR_MS
/** The delays before each attempt, as in docs/webhooks.md. */
const DELAYS_MS = [
  ...[0, 5 * SECOND_MS, 5 * MINUTE_MS, 30 * MINUTE_MS],
  ...[2, 5, 10, 14, 20, 24].map((hours) => hours * HOUR_MS),
]
/** The maximum share of random jitter. */
const JITTER = 0.1
/** Minimum between attempts to an endpoint that has failed often. */
const CIRCUIT_MS = 5 * MINUTE_MS
const START_MS = Date.UTC(2026, 2, 1)

describe('an endpoint that is down, on a simulated clock', () => {
  let folder: Awaited<ReturnType<typeof makeFolder>>
  let roles: MayflyWithClock
  let inbox: InboxJson
  let webhook: WebhookJson
  let other: HttpEndpoint
  let otherId: string
  let downAt: number
  let clock = START_MS
  let firstFailureMs: number

  beforeAll(async () => {
    folder = await makeFolder()
    roles = await startWithClock(folder.path, clock, { MAYFLY_WEBHOOK_ALLOW_PRIVATE: 'true' })
    inbox = await createInbox(roles, { duration: '14d' })
    other = await startEndpoint()
    otherId = (await register(await createInbox(roles, { duration: '14d' }), other)).id
    downAt = await freePort()
    const down = await startEndpoint(undefined, { port: downAt })
    webhook = await register(inbox, down)
    await down.dispose()
  })
  afterAll(async () => {
    await roles.close()
    await other.dispose()
    await folder.remove()
  })

  const register = ({ id }: InboxJson, { url }: HttpEndpoint) =>
    registerWebhook(roles, `/v1/inboxes/${id}/webhooks`, { url })

  const now = async () => (await call<WebhookJson>(roles, 'GET', `/v1/webhooks/${webhook.id}`)).body

  async function moveTo(ms: number): Promise<void> {
    clock = ms
    await roles.setClock(ms)
  }

  async function sendMail(subject: string): Promise<void> {
    const { length } = await messagesOf(roles, inbox.id, 0)
    await send(roles, inbox.address, mail(subject))
    await messagesOf(roles, inbox.id, length + 1)
  }

  /** Resolves with the newest delivery once that many attempts of it have been made. */
  const attempted = (count: number) =>
    until(`attempt ${count}`, async () => {
      const [newest] = await deliveriesOf(roles, webhook.id)
      return newest?.attempts.length === count ? newest : null
    })

  /** Resolves once all due attempts have been made. Another webhook's test delivery shows that. */
  async function allDueIsAttempted(): Promise<void> {
    const before = other.requests.length
    await call(roles, 'POST', `/v1/webhooks/${otherId}/test`)
    await until('a sample', () => other.requests.length > before)
  }

  const dueOf = ({ next_attempt_at }: DeliveryJson) => Date.parse(next_attempt_at ?? '')

  it('gets ten attempts, each when it is due and not earlier, over about three days', async () => {
    await sendMail('never delivered')
    let delivery = await attempted(1)
    firstFailureMs = clock
    for (const [made, delayMs] of DELAYS_MS.slice(1).entries()) {
      expect(delivery).toMatchObject({ state: 'pending' })
      const dueMs = dueOf(delivery)
      expect(dueMs - clock).toBeGreaterThanOrEqual(delayMs)
      expect(dueMs - clock).toBeLessThanOrEqual(delayMs * (1 + JITTER))
      await moveTo(dueMs - 1)
      await allDueIsAttempted()
      expect((await attempted(made + 1)).attempts).toHaveLength(made + 1)
      await moveTo(dueMs)
      delivery = await attempted(made + 2)
      expect(delivery.attempts.at(-1)).toEqual({
        ...{ time: new Date(dueMs).toISOString(), status: null, answer: null },
        ...{ latency_ms: expect.any(Number) as number, error: 'connect: the connection was refused' },
      })
    }
    expect(clock - START_MS).toBeGreaterThanOrEqual(75 * HOUR_MS)
    expect(delivery).toMatchObject({ state: 'failed', next_attempt_at: null })
    await moveTo(clock + DAY_MS)
    await allDueIsAttempted()
    expect(only(await deliveriesOf(roles, webhook.id))).toEqual(delivery)
  })

  it('has its webhook disabled after five days of failures, and not earlier', async () => {
    const fiveDaysMs = firstFailureMs + 5 * DAY_MS
    await moveTo(fiveDaysMs - CIRCUIT_MS - MINUTE_MS)
    await sendMail('never delivered either')
    await attempted(1)
    await moveTo(clock + CIRCUIT_MS)
    const second = await attempted(2)
    expect(clock).toBeLessThan(fiveDaysMs)
    expect(await now()).toMatchObject({ state: 'active', disabled_reason: null })
    await moveTo(dueOf(second))
    const third = await attempted(3)
    await until('the webhook to be disabled', async () => (await now()).state === 'disabled')
    expect(await now()).toMatchObject({ disabled_reason: 'failing' })
    await moveTo(dueOf(third))
    await until('the delivery to be abandoned', async () => {
      const [delivery] = await deliveriesOf(roles, webhook.id)
      return delivery?.abandoned_reason === 'webhook-disabled'
    })
    await sendMail('while it is disabled')
  })

  it('gets new events once its owner has enabled the webhook, despite earlier failures', async () => {
    await call(roles, 'PATCH', `/v1/webhooks/${webhook.id}`, { body: { state: 'active' } })
    await sendMail('delivered at last')
    await attempted(1)
    await moveTo(clock + CIRCUIT_MS)
    const delivery = await attempted(2)
    expect(await now()).toMatchObject({ state: 'active' })
    const up = await startEndpoint(undefined, { port: downAt })
    await moveTo(dueOf(delivery))
    await until('the mail to be delivered', () => up.requests.length > 0)
    expect((await attempted(3)).state).toBe('succeeded')
    const subjects = up.requests.map(({ body }) => (JSON.parse(body) as { data: { subject: string } }).data)
    expect(only(subjects)).toMatchObject({ subject: 'delivered at last' })
    expect(await deliveriesOf(roles, webhook.id)).toHaveLength(3)
    await up.dispose()
  })
})
