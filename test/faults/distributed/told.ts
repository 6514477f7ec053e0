import { call, type Target } from '#test/harness/client.js'
import { startEndpoint, type HttpEndpoint } from '#test/harness/endpoint.js'
import { until } from '#test/harness/until.js'
import { registerWebhook, type WebhookJson } from '#test/harness/webhooks.js'
import type { Ledger } from '../ledger.js'
import { IS_LONG } from './long.js'

/** Past a lease, and a start of what was down. */
const TOLD_WITHIN_MS = 60_000

/** What the endpoint of a webhook was told, to be held against what the ledger says was accepted. */
export class Told {
  private constructor(
    private readonly target: Target,
    private readonly webhook: WebhookJson,
    private readonly endpoint: HttpEndpoint,
    /** Of the process of webhooks. */
    private readonly metrics: Target,
    private readonly unknownBefore: number,
  ) {}

  /** Of one inbox, or of all where faults last long: what nobody knows the outcome of then waits for its lease. */
  static async begin(target: Target, inboxId: string, metrics: Target): Promise<Told> {
    const endpoint = await startEndpoint()
    const path = IS_LONG ? '/v1/webhooks' : `/v1/inboxes/${inboxId}/webhooks`
    const webhook = await registerWebhook(target, path, { url: endpoint.url })
    return new Told(target, webhook, endpoint, metrics, await unknownOutcomes(metrics))
  }

  /**
   * Every accepted mail was told, and again only where what became of an attempt could not be known. Then the webhook
   * is removed.
   */
  async mustHold({ accepted }: Ledger): Promise<void> {
    const { id, inbox_id } = this.webhook
    const due = [...accepted].filter(([, { inboxId }]) => inbox_id === null || inbox_id === inboxId)
    expect(due.length).toBeGreaterThan(0)
    await until(
      'every accepted mail to be told',
      () => {
        const told = new Set(this.messages())
        return due.every(([messageId]) => told.has(messageId))
      },
      TOLD_WITHIN_MS,
    )
    const ids = new Set(this.endpoint.requests.map(({ headers }) => headers['webhook-id']))
    const messages = this.messages()
    expect(ids.size).toBe(new Set(messages).size)
    const unknown = (await unknownOutcomes(this.metrics)) - this.unknownBefore
    expect(messages.length - ids.size).toBeLessThanOrEqual(unknown)
    await call(this.target, 'DELETE', `/v1/webhooks/${id}`)
  }

  /** Ends the endpoint. */
  stop(): Promise<void> {
    return this.endpoint.dispose()
  }

  /** One for each request. */
  private messages(): string[] {
    return this.endpoint.requests.map(({ body }) => (JSON.parse(body) as { data: { id: string } }).data.id)
  }
}

async function unknownOutcomes(metrics: Target): Promise<number> {
  const { body } = await call<string>(metrics, 'GET', '/metrics')
  const [, count] = /^mayfly_webhook_attempts_total\{result="unknown"\} (\d+)$/m.exec(body) ?? []
  if (count === undefined) throw new Error('the process of webhooks does not count attempts')
  return Number(count)
}
