import { registerWebhook } from '#test/harness/webhooks.js'
import { appendBacklog } from './delivery-backlog.js'
import type { CountingEndpoint } from './counting-endpoint.js'
import { realisticMail } from './realistic-mail.js'
import { sendAll } from './smtp-client.js'
import type { InboxHandle, Subject } from './subject.js'

/** The maximum of an inbox. With 10 attempts each, they can take all attempt slots. */
const WEBHOOKS = 20
const MAIL_CONNECTIONS = 20
const MESSAGES = 100

/** An inbox whose webhooks all have an endpoint that answers at once. */
export class FanOutInbox {
  private constructor(
    private readonly inbox: InboxHandle,
    private readonly endpoint: CountingEndpoint,
    readonly webhooks: readonly { id: string; secret: string }[],
  ) {}

  static async make(subject: Subject, endpoint: CountingEndpoint): Promise<FanOutInbox> {
    const inbox = await subject.createInbox()
    const path = `/v1/inboxes/${inbox.id}/webhooks`
    const webhooks: { id: string; secret: string }[] = []
    while (webhooks.length < WEBHOOKS) {
      webhooks.push(await registerWebhook(subject.mayfly, path, { url: endpoint.url }))
    }
    return new FanOutInbox(inbox, endpoint, webhooks)
  }

  /** Deliveries per second, from the first mail sent until the last webhook has received the last one. */
  async deliverLive(subject: Subject, mails: number): Promise<number> {
    const { count } = await this.endpoint.read()
    const started = performance.now()
    await sendAll({
      port: subject.mayfly.smtpPort,
      connections: MAIL_CONNECTIONS,
      mails,
      addressOf: () => this.inbox.address,
      sourceOf: realisticMail,
    })
    await this.endpoint.untilCount(count + mails * WEBHOOKS)
    return (mails * WEBHOOKS * 1_000) / (performance.now() - started)
  }

  /**
   * Restarts Mayfly with a backlog of deliveries of the inbox's messages to its first `webhooks`. Resolves once `begun`
   * of them have been made. The backlog is done once the endpoint has counted `end` requests.
   */
  async deliverBacklog(
    subject: Subject,
    { webhooks, count, begun }: { webhooks: number; count: number; begun: number },
  ): Promise<{ subject: Subject; end: number }> {
    const page = await subject.read(`/v1/inboxes/${this.inbox.id}/messages?limit=${MESSAGES}`)
    const messageIds = (JSON.parse(page) as { id: string }[]).map(({ id }) => id)
    const webhookIds = this.webhooks.slice(0, webhooks).map(({ id }) => id)
    const backlog = { webhookIds, inboxId: this.inbox.id, messageIds, count }
    const before = (await this.endpoint.read()).count
    const restarted = await subject.restartAfter((dataDir) => appendBacklog(dataDir, backlog))
    await this.endpoint.untilCount(before + begun)
    return { subject: restarted, end: before + count }
  }
}
