import { LRUCache } from 'lru-cache'
import type { AccountId, InboxId, MessageId } from '#libs/domain/ids/typeid.js'
import { bodyKindOf } from '#libs/domain/inbox/events.js'
import { asOf } from '#libs/domain/inbox/inbox.js'
import type { Delivery } from '#libs/domain/webhook/delivery.js'
import type { DeliveryAbandoned } from '#libs/domain/webhook/events.js'
import {
  bodyWithoutMail,
  domainBody,
  keyBody,
  messageBody,
  quotaBody,
  type OpenedMessage,
} from '#libs/mail/json/message-json.js'
import { openBody } from '#libs/ports/key-vault/sealing.js'
import type { KeyVault } from '#libs/ports/key-vault/key-vault.js'
import { ReadModelUnavailableError } from '#libs/ports/read-model/view-store.js'
import type { MailQueries } from '#libs/ports/read-model/queries.js'
import { Budget, type Release } from '#libs/runtime/fairness/budget.js'
import { EXAMPLE_MAIL, type ParsedMail } from '#libs/mail/message.js'

/** The path prefix of links in a body. */
const INBOXES_PATH = '/v1/inboxes'
const MIB = 1024 * 1024
const REMEMBERED_BYTES = 16 * MIB
const REMEMBERED_FOR_MS = 60_000

export interface BodyOptions {
  inboxes: Pick<MailQueries, 'inbox' | 'message' | 'sealedParts'>
  vault: Pick<KeyVault, 'find'>
  now: () => Date
  /** Scales the memory for large bodies: above 0, at most 1. */
  memoryScale: number
  /** Called when an attempt has waited too long for memory. */
  onExhausted: () => void
}

/** Estimated bytes of JSON for each byte of a mail, which may have HTML and the text extracted from it. */
const JSON_PER_MAIL = 2
/** Smaller bodies don't count towards the memory budget of their account. */
const SMALL_BYTES = 256 * 1024
/** How long a large body waits for memory. After that the attempt is retried later. */
const WAIT_MS = 10_000

/** The body, to be released once it is sent, or why there is nothing to send. */
export type NotificationBody = { json: Buffer; release: Release } | { gone: DeliveryAbandoned['reason'] }

/** Writes the bodies of deliveries from the current views. */
export class NotificationBodies {
  /** The bodies of recent messages, written once for all webhooks and cached for a minute. */
  private readonly remembered = new LRUCache<string, Buffer, () => Promise<Buffer>>({
    maxSize: REMEMBERED_BYTES,
    sizeCalculation: (json) => json.length,
    ttl: REMEMBERED_FOR_MS,
    ttlAutopurge: true,
    // A body that is evicted while it is written is still sent.
    ignoreFetchAbort: true,
    fetchMethod: (_, __, { context: write }) => write(),
  })
  /** Memory for large bodies until they are sent: an endpoint may take as long as an attempt lasts. */
  private readonly memory: Budget

  constructor(private readonly options: BodyOptions) {
    const { memoryScale, onExhausted } = options
    const bytes = memoryScale * MIB
    this.memory = new Budget({ total: 128 * bytes, perOwner: 48 * bytes, waitMs: WAIT_MS, onExhausted })
  }

  /** Rejects with ReadModelUnavailableError while the views are not complete, and with BudgetExhaustedError. */
  async write({ id, accountId, environment, notification }: Delivery): Promise<NotificationBody> {
    const { occurredAt: time } = notification
    if (notification.type === 'sample') return small(messageBody(time, sampleOf(id, time), INBOXES_PATH))
    if ('domainId' in notification) return small(domainBody(notification, environment))
    if ('keyId' in notification) return small(keyBody(notification, environment))
    if ('quota' in notification) return small(quotaBody(notification))
    const kind = bodyKindOf(notification.type)
    if (kind !== 'message') return small(bodyWithoutMail(kind, notification))
    const { inboxId, messageId } = notification
    if (messageId === null) throw new TypeError(`${notification.type} has no message`)
    return this.received(accountId, inboxId, messageId, time)
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
    // The views showed the inbox when the delivery was requested. If it is missing, they are being rebuilt.
    if (row === null) throw notShown(messageId)
    if (asOf(row.inbox, now()).state !== 'active' || key.state === 'forgotten') return { gone: 'inbox-ended' }
    if (message?.message.state === 'deleted') return { gone: 'message-deleted' }
    if (message === null || key.state === 'unknown') throw notShown(messageId)
    const { receivedAt, size } = message.message
    const write = async () => {
      const parts = await inboxes.sealedParts({ inboxId, messageId }, size)
      if (parts === null) throw notShown(messageId)
      const opened = openBody(key.key, { id: messageId, inboxId, receivedAt }, parts)
      return Buffer.from(messageBody(time, opened, INBOXES_PATH))
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

/** A made-up mail. Its ids have the bytes of the delivery's id, and belong to no inbox or message. */
function sampleOf(id: Delivery['id'], receivedAt: Date): OpenedMessage {
  const suffix = id.slice(id.indexOf('_'))
  const subject = 'A sample'
  const headers = [{ name: 'Subject', value: subject }]
  const mail: ParsedMail = { ...EXAMPLE_MAIL, subject, headers, date: receivedAt.toISOString() }
  return { id: `msg${suffix}` as MessageId, inboxId: `inb${suffix}` as InboxId, receivedAt, mail, bytes: 0 }
}
