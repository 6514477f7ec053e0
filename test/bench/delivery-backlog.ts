import { randomBytes } from 'node:crypto'
import { readSettings } from '#libs/runtime/config/settings.js'
import { openEngine } from '#libs/engines/open-engine.js'
import { Recorder } from '#libs/ports/event-log/cloud-event.js'
import { brand, idFromBytes, type InboxId, type MessageId } from '#libs/domain/ids/typeid.js'
import type { Webhook } from '#libs/domain/webhook/webhook.js'

export interface Backlog {
  /** Delivery n goes to webhook n modulo their number, and likewise for messages. */
  webhookIds: readonly string[]
  inboxId: string
  messageIds: readonly string[]
  count: number
}

const BATCH_SIZE = 20_000

/**
 * Appends deliveries that are due at once to the log of a data folder that no process has open. Resolves once they are
 * durable. The views do not have them yet.
 */
export async function appendBacklog(dataDir: string, backlog: Backlog): Promise<void> {
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
    for (let from = 0; from < backlog.count; from += BATCH_SIZE) {
      const numbers = Array.from({ length: Math.min(BATCH_SIZE, backlog.count - from) }, (_, n) => from + n)
      await Promise.all(numbers.map((number) => appendDelivery(recorder, webhooks, backlog, number)))
    }
  } finally {
    await engine.close()
  }
}

async function appendDelivery(
  recorder: Recorder,
  webhooks: readonly Webhook[],
  { inboxId, messageIds }: Backlog,
  number: number,
): Promise<void> {
  const webhook = webhooks[number % webhooks.length]
  if (webhook === undefined) throw new Error('the backlog has no webhook')
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
      // Real ids are digests, so they are in no order either.
      deliveryId: idFromBytes('dlv', randomBytes(16)),
    },
    { accountId, environment, keyId: null },
  )
}
