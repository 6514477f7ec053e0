import { call, type Target } from '#test/harness/client.js'
import { startEndpoint, type HttpEndpoint } from '#test/harness/endpoint.js'
import { until } from '#test/harness/until.js'
import { registerWebhook } from '#test/harness/webhooks.js'
import type { Ledger } from '../ledger.js'

/** Past a lease, and a start of what was down. */
const TOLD_WITHIN_MS = 60_000

/** What the endpoint of an inbox's webhook was told, to be held against what the ledger says was accepted. */
export class Told {
  private constructor(
    private readonly inboxId: string,
    private readonly endpoint: HttpEndpoint,
    /** Of the process of webhooks. */
    private readonly metrics: Target,
    private readonly unknownBefore: number,
  ) {}

  static async begin(target: Target, inboxId: string, metrics: Target): Promise<Told> {
    const endpoint = await startEndpoint()
    await registerWebhook(target, `/v1/inboxes/${inboxId}/webhooks`, { url: endpoint.url })
    return new Told(inboxId, endpoint, metrics, await unknownOutcomes(metrics))
  }

  /** Every accepted mail was told, and again only where what became of an attempt could not be known. */
  async mustHold({ accepted }: Ledger): Promise<void> {
    const due = [...accepted].filter(([, { inboxId }]) => inboxId === this.inboxId).map(([id]) => id)
    await until(
      'every accepted mail to be told',
      () => {
        const told = new Set(this.messages())
        return due.every((id) => told.has(id))
      },
      TOLD_WITHIN_MS,
    )
    const ids = new Set(this.endpoint.requests.map(({ headers }) => headers['webhook-id']))
    const messages = this.messages()
    expect(due.length).toBeGreaterThan(0)
    expect(ids.size).toBe(new Set(messages).size)
    const unknown = (await unknownOutcomes(this.metrics)) - this.unknownBefore
    expect(messages.length - ids.size).toBeLessThanOrEqual(unknown)
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
