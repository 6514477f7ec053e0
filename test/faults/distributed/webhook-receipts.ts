import { call, type Target } from '#test/harness/client.js'
import { startEndpoint, type HttpEndpoint } from '#test/harness/endpoint.js'
import { until } from '#test/harness/until.js'
import { registerWebhook, type WebhookJson } from '#test/harness/webhooks.js'
import type { AcknowledgedWrites } from '../acknowledged-writes.js'
import { IS_LONG } from './deployment.js'

/** Longer than a lease and the restart of a process. */
const DELIVERED_WITHIN_MS = 60_000

/** The deliveries that the endpoint of a webhook has received, to compare with the accepted mails. */
export class WebhookReceipts {
  private constructor(
    private readonly target: Target,
    private readonly webhook: WebhookJson,
    private readonly endpoint: HttpEndpoint,
    /** The metrics of the process of webhooks. */
    private readonly metrics: Target,
    private readonly unknownBefore: number,
  ) {}

  /** Registers a webhook for one inbox, or for all if faults last long, because unknown outcomes then wait for their lease. */
  static async register(target: Target, inboxId: string, metrics: Target): Promise<WebhookReceipts> {
    const endpoint = await startEndpoint()
    const path = IS_LONG ? '/v1/webhooks' : `/v1/inboxes/${inboxId}/webhooks`
    const webhook = await registerWebhook(target, path, { url: endpoint.url })
    return new WebhookReceipts(target, webhook, endpoint, metrics, await unknownOutcomes(metrics))
  }

  /**
   * Expects that every accepted mail was delivered, and repeated only if the outcome of an attempt was unknown. Then
   * removes the webhook.
   */
  async verify({ accepted }: AcknowledgedWrites): Promise<void> {
    const { id, inbox_id } = this.webhook
    const due = [...accepted].filter(([, { inboxId }]) => inbox_id === null || inbox_id === inboxId)
    expect(due.length).toBeGreaterThan(0)
    await until(
      'every accepted mail to be delivered',
      () => {
        const delivered = new Set(this.messages())
        return due.every(([messageId]) => delivered.has(messageId))
      },
      DELIVERED_WITHIN_MS,
    )
    const ids = new Set(this.endpoint.requests.map(({ headers }) => headers['webhook-id']))
    const messages = this.messages()
    expect(ids.size).toBe(new Set(messages).size)
    const unknown = (await unknownOutcomes(this.metrics)) - this.unknownBefore
    expect(messages.length - ids.size).toBeLessThanOrEqual(unknown)
    await call(this.target, 'DELETE', `/v1/webhooks/${id}`)
  }

  /** Stops the endpoint. */
  stop(): Promise<void> {
    return this.endpoint.dispose()
  }

  /** The message id of each request. */
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
