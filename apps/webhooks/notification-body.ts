import { LRUCache } from 'lru-cache'
import { inboxEndBody, messageBody, messageDeletedBody } from '#libs/contract/event-body.js'
import type { OpenedMessage } from '#libs/contract/message-json.js'
import { bodyContext, unsealJsonText } from '#libs/erasure/content.js'
import type { KeyVault } from '#libs/erasure/key-vault.js'
import { asOf } from '#libs/inbox/inbox.js'
import type { ParsedMail } from '#libs/mail/message.js'
import { ReadModelUnavailableError, type InboxQueries } from '#libs/read-model/queries.js'
import type { InboxId, MessageId } from '#libs/typeid/typeid.js'
import type { DeliveryAbandoned } from '#libs/webhook/delivery-events.js'
import type { Delivery } from '#libs/webhook/delivery.js'

/** The path that links in what is told begin with. */
const FAMILY = '/v1/inboxes'
const REMEMBERED_BYTES = 16 * 1024 * 1024
const REMEMBERED_FOR_MS = 60_000

export interface BodyOptions {
  inboxes: Pick<InboxQueries, 'inbox' | 'message' | 'body'>
  vault: Pick<KeyVault, 'find'>
  now: () => Date
}

/** What is sent, or why there is nothing left to send. */
export type NotificationBody = { text: string } | { gone: DeliveryAbandoned['reason'] }

/** Writes what a delivery tells, from what the views hold at the time. */
export class NotificationBodies {
  /** The texts of messages sent last, written once for all webhooks, and kept in memory for a minute. */
  private readonly texts = new LRUCache<string, string, () => Promise<string>>({
    maxSize: REMEMBERED_BYTES,
    sizeCalculation: (text) => text.length,
    ttl: REMEMBERED_FOR_MS,
    ttlAutopurge: true,
    // A text that is dropped while it is written is still sent.
    ignoreFetchAbort: true,
    fetchMethod: (_, __, { context: write }) => write(),
  })

  constructor(private readonly options: BodyOptions) {}

  /** Rejects where the views can't tell yet. */
  async write({ id, notification }: Delivery): Promise<NotificationBody> {
    const { occurredAt: time } = notification
    switch (notification.type) {
      case 'inbox.expired':
      case 'inbox.deleted':
        return { text: inboxEndBody(notification.type, time, notification.inboxId) }
      case 'message.deleted':
        return { text: messageDeletedBody(time, notification) }
      case 'message.received':
        return this.received(notification.inboxId, notification.messageId, time)
      case 'sample':
        return { text: messageBody(time, sampleOf(id, time), FAMILY) }
    }
  }

  private async received(inboxId: InboxId, messageId: MessageId, time: Date): Promise<NotificationBody> {
    const { inboxes, vault, now } = this.options
    const [row, message, key] = await Promise.all([
      inboxes.inbox(inboxId),
      inboxes.message({ inboxId, messageId }),
      vault.find(inboxId),
    ])
    // Asked for once the views had shown it: without it they are being rebuilt.
    if (row === null) throw notShown(messageId)
    if (asOf(row.inbox, now()).state !== 'active' || key.state === 'forgotten') return { gone: 'inbox-ended' }
    if (message?.message.state === 'deleted') return { gone: 'message-deleted' }
    if (message === null || key.state === 'unknown') throw notShown(messageId)
    const { receivedAt } = message.message
    const write = async () => {
      const sealed = await inboxes.body({ inboxId, messageId })
      if (sealed === null) throw notShown(messageId)
      const json = unsealJsonText(key.key, bodyContext(inboxId, messageId), sealed)
      const mail = JSON.parse(json) as ParsedMail
      return messageBody(time, { id: messageId, inboxId, receivedAt, mail, bytes: json.length }, FAMILY)
    }
    return {
      text: await this.texts.forceFetch(`${messageId} ${time.toISOString()}`, { context: write }),
    }
  }
}

function notShown(messageId: MessageId): Error {
  return new ReadModelUnavailableError(`the views do not show ${messageId} now`)
}

/** A made-up mail under ids that nothing has, those of the delivery's own bytes. */
function sampleOf(id: Delivery['id'], receivedAt: Date): OpenedMessage {
  const suffix = id.slice(id.indexOf('_'))
  const [sender, recipient] = ['sender@example.com', 'sample@example.org']
  const text = 'This is a sample that shows what a mail looks like. Your code is 481516.'
  const envelope = {
    mailFrom: sender,
    rcptTo: recipient,
    helo: 'mail.example.com',
    remoteAddress: '192.0.2.1',
    tls: null,
  }
  const nobody = { cc: [], replyTo: [], links: [], attachments: [], headers: [], warnings: [] }
  const mail: ParsedMail = {
    ...nobody,
    ...{ subject: 'A sample', sender, recipient, envelope, text, html: null, htmlText: null },
    from: [{ name: 'Sender', address: sender }],
    to: [{ name: null, address: recipient }],
    codes: [{ value: '481516', text: '481516', confidence: 1 }],
    ...{ date: receivedAt.toISOString(), size: text.length, sha256: '0'.repeat(64) },
  }
  return { id: `msg${suffix}` as MessageId, inboxId: `inb${suffix}` as InboxId, receivedAt, mail, bytes: 0 }
}
