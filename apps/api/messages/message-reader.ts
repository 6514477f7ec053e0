import { Injectable } from '@nestjs/common'
import { largeCache } from '#libs/runtime/large-cache.js'
import { isId, type InboxId, type MessageId } from '#libs/domain/ids/typeid.js'
import type { ActiveInbox, Inbox, Message } from '#libs/domain/inbox/inbox.js'
import type { OpenedMessage } from '#libs/mail/json/message-json.js'
import { openBody, SealBrokenError, type SecretKey, unsealMail } from '#libs/ports/key-vault/sealing.js'
import type { UsageRecorder } from '#libs/ports/usage/usage-recorder.js'
import { notFound, Problem } from '../http/problems.js'
import { Views } from '../views.js'
import { beingDeleted, hasEnded } from '../inboxes/inboxes.service.js'
import { OpenedMail } from './opened-mail.js'

/*
 * Reads messages: finds and opens them, and records which were read.
 */

export type PresentMessage = Extract<Message, { state: 'present' }>

/** The maximum size of a parsed mail in memory, relative to its JSON. */
const MEMORY_FACTOR = 3

/** Finds messages in the views and opens them. */
@Injectable()
export class MessageReader {
  /** Messages that are being opened. Concurrent readers share one opening. */
  private readonly opening = new Map<MessageId, Promise<OpenedMessage | null>>()

  constructor(
    private readonly views: Views,
    private readonly mail: OpenedMail,
  ) {}

  /**
   * Throws not-found or message-deleted if the inbox does not have the message, and the 410 of the inbox if it has
   * ended since it was opened. Throws ViewsCatchingUpError while the views are rebuilt, since they show a deleted
   * message until they reach its deletion.
   */
  async find({ id: inboxId }: ActiveInbox, id: string): Promise<PresentMessage> {
    if (!isId('msg', id)) throw noMessage(id)
    const row = await this.views.readComplete(inboxId, () =>
      this.views.inboxes.message({ inboxId, messageId: id }),
    )
    if (row === null) throw await this.whyMissing(inboxId, id)
    const { message } = row
    if (message.state === 'present') return message
    const deletedAt = message.deletedAt.toISOString()
    throw new Problem('message-deleted', {
      detail: `The message ${message.id} was deleted at ${deletedAt}.`,
      members: { deleted_at: deletedAt },
    })
  }

  /** The problem of a missing message: its inbox may have ended, with its messages, since it was opened. */
  async whyMissing(inboxId: InboxId, id: string): Promise<Problem> {
    const row = await this.views.inboxes.inbox(inboxId)
    return row !== null && row.inbox.state !== 'active' ? hasEnded(row.inbox) : noMessage(id)
  }

  async keyOf(inboxId: InboxId): Promise<SecretKey> {
    const key = await this.findKey(inboxId)
    if (key === null) throw beingDeleted(inboxId)
    return key
  }

  /** Null if the key is forgotten, since the inbox has ended on the log. Throws catching-up if it is not known yet. */
  async findKey(inboxId: InboxId): Promise<SecretKey | null> {
    const lookup = await this.views.vault.find(inboxId)
    if (lookup.state === 'unknown') throw beingDeleted(inboxId)
    return lookup.state === 'known' ? lookup.key : null
  }

  /** Null if the message, or its inbox, has been deleted since the row was read. */
  open(key: SecretKey, inboxId: InboxId, message: PresentMessage): Promise<OpenedMessage | null> {
    const { id } = message
    const cached = this.mail.get(inboxId, id)
    if (cached !== null) return Promise.resolve(cached)
    const pending = this.opening.get(id)
    if (pending !== undefined) return pending
    const opening = this.openNow(key, inboxId, message).finally(() => this.opening.delete(id))
    this.opening.set(id, opening)
    return opening
  }

  private async openNow(
    key: SecretKey,
    inboxId: InboxId,
    { id, receivedAt, size }: PresentMessage,
  ): Promise<OpenedMessage | null> {
    const parts = await this.views.inboxes.sealedParts({ inboxId, messageId: id }, size)
    if (parts === null) return null
    const opened = openBody(key, { id, inboxId, receivedAt }, parts)
    this.mail.add(opened, MEMORY_FACTOR * opened.bytes)
    return opened
  }

  /** The source, byte for byte; null as in `open`. */
  async raw(key: SecretKey, inboxId: InboxId, messageId: MessageId): Promise<Buffer | null> {
    const sealed = await this.views.inboxes.raw({ inboxId, messageId })
    if (sealed === null) return null
    try {
      return (await unsealMail(key, inboxId, messageId, sealed)).raw
    } catch (error) {
      // The message has the warning seal-broken.
      if (error instanceof SealBrokenError) return Buffer.alloc(0)
      throw error
    }
  }

  /** Throws the problem of a message that has been deleted since it was found. */
  async throwDeleted(inbox: ActiveInbox, id: MessageId): Promise<never> {
    await this.find(inbox, id)
    throw beingDeleted(inbox.id)
  }
}

export function noMessage(id: string): Problem {
  return notFound(`There is no message ${id.slice(0, 60)} in this inbox.`)
}

/** A few megabytes of ids. A message whose id is evicted is recorded again, which does not change the first reading. */
const MAX_REMEMBERED = 50_000

/** Records when a message was first in an answer of this process. */
export class FirstReadings {
  private readonly recorded = largeCache<MessageId, true>(MAX_REMEMBERED)

  constructor(
    private readonly usage: Pick<UsageRecorder, 'record'>,
    private readonly now: () => Date,
  ) {}

  note(
    { id: inboxId, keyId, labels, accountId, environment }: Inbox,
    { id: messageId, receivedAt }: { id: MessageId; receivedAt: Date },
  ): void {
    if (this.recorded.has(messageId)) return
    this.recorded.set(messageId, true)
    const readAt = this.now()
    this.usage.record(
      { type: 'MessageRead', keyId, inboxId, messageId, receivedAt, labels, readAt },
      { accountId, environment },
    )
  }
}
