import { LRUCache } from 'lru-cache'
import { Budget, type Release } from '#libs/runtime/fair-share.js'
import {
  type OpenedMessage,
  inboxEndBody,
  messageBody,
  messageDeletedBody,
} from '#libs/mail/json/message-json.js'
import { bodyContext, unsealJsonText } from '#libs/ports/key-vault/content.js'
import type { KeyVault } from '#libs/ports/key-vault/key-vault.js'
import { asOf } from '#libs/domain/inbox/inbox.js'
import type { ParsedMail } from '#libs/mail/message.js'
import { ReadModelUnavailableError, type InboxQueries } from '#libs/ports/read-model/queries.js'
import type { AccountId, InboxId, MessageId } from '#libs/domain/ids/typeid.js'
import type { DeliveryAbandoned } from '#libs/domain/webhook/webhook-events.js'
import type { Delivery } from '#libs/domain/webhook/delivery.js'

/** The path that links in what is told begin with. */
const FAMILY = '/v1/inboxes'
const MIB = 1024 * 1024
const REMEMBERED_BYTES = 16 * MIB
const REMEMBERED_FOR_MS = 60_000

export interface BodyOptions {
  inboxes: Pick<InboxQueries, 'inbox' | 'message' | 'body'>
  vault: Pick<KeyVault, 'find'>
  now: () => Date
  /** Of the full size of the memory for large bodies: above 0, at most 1. */
  memoryScale: number
  /** Called when an attempt has waited too long for memory. */
  onExhausted: () => void
}

/** A mail's JSON takes about this many times the mail's size: it may have HTML, and the text made of it. */
const JSON_PER_MAIL = 2
/** Bodies that are smaller take no memory of their account's. */
const SMALL_BYTES = 256 * 1024
/** In which an account gets memory for a large body; else the attempt is made later. */
const WAIT_MS = 10_000

/** What is sent, and to be released once that is over; or why there is nothing left to send. */
export type NotificationBody = { json: Buffer; release: Release } | { gone: DeliveryAbandoned['reason'] }

/** Writes the body of a delivery, from what the views hold at the time. */
export class NotificationBodies {
  /** The bodies of messages sent last, written once for all webhooks, and kept in memory for a minute. */
  private readonly remembered = new LRUCache<string, Buffer, () => Promise<Buffer>>({
    maxSize: REMEMBERED_BYTES,
    sizeCalculation: (json) => json.length,
    ttl: REMEMBERED_FOR_MS,
    ttlAutopurge: true,
    // A body that is dropped while it is written is still sent.
    ignoreFetchAbort: true,
    fetchMethod: (_, __, { context: write }) => write(),
  })
  /** For large bodies while they are sent: an endpoint may take as long as an attempt lasts. */
  private readonly memory: Budget

  constructor(private readonly options: BodyOptions) {
    const { memoryScale, onExhausted } = options
    const bytes = memoryScale * MIB
    this.memory = new Budget({ total: 128 * bytes, perOwner: 48 * bytes, waitMs: WAIT_MS, onExhausted })
  }

  /** Rejects while the views are not complete, and with BudgetExhaustedError. */
  async write({ id, accountId, notification }: Delivery): Promise<NotificationBody> {
    const { occurredAt: time } = notification
    switch (notification.type) {
      case 'inbox.expired':
      case 'inbox.deleted':
        return small(inboxEndBody(notification.type, time, notification.inboxId))
      case 'message.deleted':
        return small(messageDeletedBody(time, notification))
      case 'message.received':
        return this.received(accountId, notification.inboxId, notification.messageId, time)
      case 'sample':
        return small(messageBody(time, sampleOf(id, time), FAMILY))
    }
  }

  private async received(
    accountId: AccountId,
    inboxId: InboxId,
    messageId: MessageId,
    time: Date,
  ): Promise<NotificationBody> {
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
    const { receivedAt, size } = message.message
    const write = async () => {
      const sealed = await inboxes.body({ inboxId, messageId })
      if (sealed === null) throw notShown(messageId)
      const json = unsealJsonText(key.key, bodyContext(inboxId, messageId), sealed)
      const mail = JSON.parse(json) as ParsedMail
      const opened = { id: messageId, inboxId, receivedAt, mail, bytes: json.length }
      return Buffer.from(messageBody(time, opened, FAMILY))
    }
    const bytes = JSON_PER_MAIL * size
    const release = bytes > SMALL_BYTES ? await this.memory.take(accountId, bytes) : () => undefined
    try {
      const name = `${messageId} ${time.toISOString()}`
      return { json: await this.remembered.forceFetch(name, { context: write }), release }
    } catch (error) {
      release()
      throw error
    }
  }
}

function small(text: string): NotificationBody {
  return { json: Buffer.from(text), release: () => undefined }
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
