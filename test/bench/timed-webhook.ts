import { setTimeout as pause } from 'node:timers/promises'
import { startEndpoint, type HttpEndpoint } from '#test/harness/endpoint.js'
import { until } from '#test/harness/until.js'
import { registerWebhook } from '#test/harness/webhooks.js'
import { realisticMail } from './realistic-mail.js'
import { SmtpClient } from './smtp-client.js'
import type { InboxHandle, Subject } from './subject.js'

const EVERY_MS = 50
const WARM_UP = 20
const DELIVERED_WITHIN_MS = 60_000

/** A webhook of one inbox that records when its endpoint received each message. */
export class TimedWebhook {
  private constructor(
    private readonly inbox: InboxHandle,
    private readonly endpoint: HttpEndpoint,
    private readonly receivedAtMs: ReadonlyMap<string, number>,
  ) {}

  static async register(subject: Subject): Promise<TimedWebhook> {
    const receivedAtMs = new Map<string, number>()
    const endpoint = await startEndpoint((response, { body }) => {
      const [messageId = ''] = /msg_\w+/.exec(body) ?? []
      receivedAtMs.set(messageId, performance.now())
      response.end('ok')
    })
    const inbox = await subject.createInbox()
    await registerWebhook(subject.mayfly, `/v1/inboxes/${inbox.id}/webhooks`, { url: endpoint.url })
    return new TimedWebhook(inbox, endpoint, receivedAtMs)
  }

  /** Milliseconds from each 250 until the endpoint had the whole request, at twenty mails per second. */
  async delays(subject: Subject, mails: number): Promise<number[]> {
    const client = await SmtpClient.open(subject.mayfly.smtpPort)
    const accepted: { messageId: string; atMs: number }[] = []
    for (let number = 0; number < WARM_UP + mails; number += 1) {
      const slot = performance.now()
      const reply = await client.send(this.inbox.address, realisticMail(number, this.inbox.address))
      const atMs = performance.now()
      accepted.push({ messageId: /msg_\w+/.exec(reply)?.[0] ?? '', atMs })
      await pause(Math.max(EVERY_MS - (performance.now() - slot), 0))
    }
    client.close()
    const isDelivered = () => accepted.every(({ messageId }) => this.receivedAtMs.has(messageId))
    await until('every mail to be delivered', isDelivered, DELIVERED_WITHIN_MS)
    // The first mails warm up and do not count.
    return accepted
      .slice(WARM_UP)
      .map(({ messageId, atMs }) => (this.receivedAtMs.get(messageId) ?? NaN) - atMs)
  }

  close(): Promise<void> {
    return this.endpoint.dispose()
  }
}
