import { randomBytes } from 'node:crypto'
import type { AttemptOutcome } from '#apps/webhooks/sender/exchange.js'
import { WebhookSender, type Post, type WebhookSenderOptions } from '#apps/webhooks/sender/webhook-sender.js'

export const SECRET = randomBytes(32)

/** A sender that may send to this machine, with a short timeout. */
export function openSender(options: Partial<WebhookSenderOptions> = {}): WebhookSender {
  return new WebhookSender({ allowPrivate: true, ports: [], timeoutMs: 5_000, dnsServers: null, ...options })
}

/** A POST of a webhook with one secret. */
export function post(url: string, changed: Partial<Post> = {}): Post {
  return {
    owner: 'an account',
    url,
    id: 'dlv_1',
    body: Buffer.from('{"type":"message.received"}'),
    secrets: [SECRET],
    ...changed,
  }
}

/** One attempt, with a new sender. */
export async function attempt(
  url: string,
  options: Partial<WebhookSenderOptions> = {},
  changed: Partial<Post> = {},
): Promise<AttemptOutcome> {
  const sender = openSender(options)
  try {
    return await sender.post(post(url, changed))
  } finally {
    await sender.close()
  }
}
