import { setTimeout as pause } from 'node:timers/promises'
import { startEndpoint, type HttpEndpoint } from '#test/harness/endpoint.js'
import { until } from '#test/harness/until.js'
import { registerWebhook } from '#test/harness/webhooks.js'
import { realisticMail } from './realistic-mail.js'
import { SmtpClient } from './smtp-client.js'
import type { InboxHandle, Subject } from './subject.js'

const EVERY_MS = 50
const WARM_UP = 20
const TOLD_WITHIN_MS = 60_000

/** An inbox's webhook that tells when it was told of a message. */
export class TimedWebhook {
  private constructor(
    private readonly inbox: InboxHandle,
    private readonly endpoint: HttpEndpoint,
    private readonly toldAtMs: ReadonlyMap<string, number>,
  ) {}

  static async register(subject: Subject): Promise<TimedWebhook> {
    const toldAtMs = new Map<string, number>()
    const endpoint = await startEndpoint((response, { body }) => {
      const [messageId = ''] = /msg_\w+/.exec(body) ?? []
      toldAtMs.set(messageId, performance.now())
      response.end('ok')
    })
    const inbox = await subject.createInbox()
    await registerWebhook(subject.mayfly, `/v1/inboxes/${inbox.id}/webhooks`, { url: endpoint.url })
    return new TimedWebhook(inbox, endpoint, toldAtMs)
  }

  /** Milliseconds from each 250 to when the endpoint had the request, twenty mails a second. */
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
    const isTold = () => accepted.every(({ messageId }) => this.toldAtMs.has(messageId))
    await until('every mail to be told', isTold, TOLD_WITHIN_MS)
    // The first ones meet code that has not run before.
    return accepted.slice(WARM_UP).map(({ messageId, atMs }) => (this.toldAtMs.get(messageId) ?? NaN) - atMs)
  }

  close(): Promise<void> {
    return this.endpoint.dispose()
  }
}
