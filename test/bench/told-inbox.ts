import { registerWebhook } from '#test/harness/webhooks.js'
import { askForBacklog } from './backlog.js'
import type { CountingEndpoint } from './counting-endpoint.js'
import { realisticMail } from './realistic-mail.js'
import { sendAll } from './smtp-client.js'
import type { InboxHandle, Subject } from './subject.js'

/** As many as an inbox may have: at 10 places each they can take all there are. */
const WEBHOOKS = 20
const MAIL_CONNECTIONS = 20
const MESSAGES = 100

/** An inbox whose webhooks all lead to an endpoint that answers at once. */
export class ToldInbox {
  private constructor(
    private readonly inbox: InboxHandle,
    private readonly endpoint: CountingEndpoint,
    readonly webhooks: readonly { id: string; secret: string }[],
  ) {}

  static async make(subject: Subject, endpoint: CountingEndpoint): Promise<ToldInbox> {
    const inbox = await subject.createInbox()
    const path = `/v1/inboxes/${inbox.id}/webhooks`
    const webhooks: { id: string; secret: string }[] = []
    while (webhooks.length < WEBHOOKS) {
      webhooks.push(await registerWebhook(subject.mayfly, path, { url: endpoint.url }))
    }
    return new ToldInbox(inbox, endpoint, webhooks)
  }

  /** Deliveries a second from the first mail sent to the last webhook told of the last one. */
  async tellLive(subject: Subject, mails: number): Promise<number> {
    const { count } = await this.endpoint.look()
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
   * Has the first of its webhooks, in turn, told of its messages anew, by a Mayfly started again. Resolves once
   * `begun` of them have been; all have been at `end` requests.
   */
  async tellAgain(
    subject: Subject,
    { webhooks, count, begun }: { webhooks: number; count: number; begun: number },
  ): Promise<{ subject: Subject; end: number }> {
    const page = await subject.read(`/v1/inboxes/${this.inbox.id}/messages?limit=${MESSAGES}`)
    const messageIds = (JSON.parse(page) as { id: string }[]).map(({ id }) => id)
    const webhookIds = this.webhooks.slice(0, webhooks).map(({ id }) => id)
    const asked = { webhookIds, inboxId: this.inbox.id, messageIds, count }
    const before = (await this.endpoint.look()).count
    const again = await subject.startedAgainAfter((dataDir) => askForBacklog(dataDir, asked))
    await this.endpoint.untilCount(before + begun)
    return { subject: again, end: before + count }
  }
}
