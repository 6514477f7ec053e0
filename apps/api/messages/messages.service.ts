import { Injectable } from '@nestjs/common'
import { decide } from '#libs/domain/inbox/decide.js'
import { isId, type MessageId } from '#libs/domain/ids/typeid.js'
import type { Principal } from '../access/authenticator.js'
import { Views } from '../http/views.js'
import { Changes } from '../changes.js'
import { Instance } from '../instance.js'
import { Inboxes, hasEnded } from '../inboxes/inboxes.service.js'
import { MessageReader, noMessage } from './message-reader.js'
import { OpenedMail } from './opened-mail.js'

/** What changes messages. */
@Injectable()
export class Messages {
  constructor(
    private readonly views: Views,
    private readonly inboxes: Inboxes,
    private readonly reader: MessageReader,
    private readonly changes: Changes,
    private readonly instance: Instance,
    private readonly opened: OpenedMail,
  ) {}

  /** Resolves once the deletion is durable and in force here; a repeat resolves with the first one. */
  async delete(
    principal: Principal,
    inboxId: string,
    id: string,
  ): Promise<{ id: MessageId; deletedAt: Date }> {
    const { inbox } = await this.inboxes.openContent(principal, inboxId)
    if (!isId('msg', id)) throw noMessage(id)
    const key = { inboxId: inbox.id, messageId: id }
    const row = await this.views.find(inbox.id, () => this.views.inboxes.message(key))
    const now = this.instance.now()
    const command = { type: 'DeleteMessage', ...key, keyId: principal.keyId, now } as const
    const { events, refusal } = decide({ inbox, message: row?.message ?? null }, command)
    if (refusal?.code === 'inbox-ended') throw hasEnded(refusal.inbox)
    if (refusal !== null) throw await this.reader.whyMissing(inbox.id, id)
    await this.changes.record(events, principal)
    this.opened.forget(inbox.id)
    const after = await this.views.inboxes.message(key)
    if (after?.message.state === 'deleted') return { id, deletedAt: after.message.deletedAt }
    // The inbox has ended meanwhile, and took its messages along; or views that were lost since are being rebuilt.
    await this.inboxes.openContent(principal, inboxId)
    await this.views.requireComplete(inbox.id)
    throw new Error('a deleted message is still there')
  }
}
