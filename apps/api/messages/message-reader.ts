import { Injectable } from '@nestjs/common'
import { bodyContext, unsealJsonText, unsealMail } from '#libs/erasure/content.js'
import type { SecretKey } from '#libs/erasure/seal.js'
import type { ActiveInbox, Message } from '#libs/inbox/inbox.js'
import type { ParsedMail } from '#libs/mail/message.js'
import { isId, type InboxId, type MessageId } from '#libs/typeid/typeid.js'
import { notFound, Problem, unavailable } from '../http/problems.js'
import { Views } from '../http/views.js'
import type { OpenedMessage } from './message-json.js'

export type PresentMessage = Extract<Message, { state: 'present' }>

/** Opens what the views hold sealed. */
@Injectable()
export class MessageReader {
  constructor(private readonly views: Views) {}

  /** Throws not-found or message-deleted where there is no such message in the inbox any more. */
  async find({ id: inboxId }: ActiveInbox, id: string): Promise<PresentMessage> {
    const row = isId('msg', id) ? await this.views.inboxes.message({ inboxId, messageId: id }) : null
    if (row === null) {
      await this.views.mustKnow(inboxId)
      throw notFound(`There is no message ${id.slice(0, 60)} in this inbox.`)
    }
    const { message } = row
    if (message.state === 'present') return message
    const deletedAt = message.deletedAt.toISOString()
    throw new Problem('message-deleted', {
      detail: `The message ${message.id} was deleted at ${deletedAt}.`,
      members: { deleted_at: deletedAt },
    })
  }

  async keyOf(inboxId: InboxId): Promise<SecretKey> {
    const lookup = await this.views.vault.find(inboxId)
    if (lookup.state !== 'known') throw comingToItsEnd(inboxId)
    return lookup.key
  }

  async open(
    key: SecretKey,
    inboxId: InboxId,
    message: PresentMessage,
  ): Promise<OpenedMessage & { characters: number }> {
    const { id, receivedAt } = message
    const body = await this.views.inboxes.body({ inboxId, messageId: id })
    if (body === null) throw comingToItsEnd(inboxId)
    const json = unsealJsonText(key, bodyContext(inboxId, id), body)
    return { id, inboxId, receivedAt, mail: JSON.parse(json) as ParsedMail, characters: json.length }
  }

  /** The source, byte for byte. */
  async raw(key: SecretKey, inboxId: InboxId, messageId: MessageId): Promise<Buffer> {
    const sealed = await this.views.inboxes.raw({ inboxId, messageId })
    if (sealed === null) throw comingToItsEnd(inboxId)
    return (await unsealMail(key, inboxId, messageId, sealed)).raw
  }
}

/** The views still show what the log has ended. */
function comingToItsEnd(inboxId: InboxId): Problem {
  return unavailable('catching-up', `The inbox ${inboxId} is coming to its end.`)
}
