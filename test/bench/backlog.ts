import { randomBytes } from 'node:crypto'
import { readSettings } from '#libs/runtime/config/settings.js'
import { openEngine } from '#libs/engines/open-engine.js'
import { Recorder } from '#libs/ports/event-log/cloud-event.js'
import { brand, idFromBytes, type InboxId, type MessageId } from '#libs/domain/ids/typeid.js'
import type { Webhook } from '#libs/domain/webhook/webhook.js'

export interface Backlog {
  /** Each in turn is to be told of each message in turn. */
  webhookIds: readonly string[]
  inboxId: string
  messageIds: readonly string[]
  count: number
}

const AT_ONCE = 20_000

/**
 * Asks, in the log of a folder that no process holds, for deliveries that are due at once. Resolves once they are
 * durable; the views know nothing of them yet.
 */
export async function askForBacklog(dataDir: string, backlog: Backlog): Promise<void> {
  const now = () => new Date()
  const engine = await openEngine({
    settings: readSettings({ MAYFLY_DATA_DIR: dataDir }),
    role: 'bench',
    now,
    onError: (error) => process.stderr.write(`${String(error)}\n`),
  })
  try {
    const ids = backlog.webhookIds.map((id) => brand('whk', id))
    const found = await Promise.all(ids.map((id) => engine.webhooks.webhook(id)))
    const webhooks = found.filter((webhook) => webhook !== null)
    const recorder = new Recorder(engine.log, '/mayfly/webhooks', now)
    for (let from = 0; from < backlog.count; from += AT_ONCE) {
      const numbers = Array.from({ length: Math.min(AT_ONCE, backlog.count - from) }, (_, n) => from + n)
      await Promise.all(numbers.map((number) => ask(recorder, webhooks, backlog, number)))
    }
  } finally {
    await engine.close()
  }
}

async function ask(
  recorder: Recorder,
  webhooks: readonly Webhook[],
  { inboxId, messageIds }: Backlog,
  number: number,
): Promise<void> {
  const webhook = webhooks[number % webhooks.length]
  if (webhook === undefined) throw new Error('there is no webhook to be told')
  const { id: webhookId, accountId, environment } = webhook
  const now = new Date()
  const notification = {
    type: 'message.received' as const,
    inboxId: brand('inb', inboxId) satisfies InboxId,
    messageId: brand('msg', messageIds[number % messageIds.length] ?? '') satisfies MessageId,
    occurredAt: now,
  }
  await recorder.record(
    {
      type: 'DeliveryRequested',
      ...{ webhookId, accountId, environment, notification, replayId: null, requestedAt: now },
      // As the digests that they are otherwise, in no order.
      deliveryId: idFromBytes('dlv', randomBytes(16)),
    },
    { accountId, environment, keyId: null },
  )
}
