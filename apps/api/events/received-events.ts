import { Injectable } from '@nestjs/common'
import type { MessageId } from '#libs/domain/ids/typeid.js'
import type { ActiveInbox } from '#libs/domain/inbox/inbox.js'
import { messageBody } from '#libs/mail/json/message-json.js'
import type { MailRead } from '../http/budgets.js'
import { beingDeleted } from '../inboxes/inboxes.service.js'
import { FirstReadings, MessageReader } from '../messages/message-reader.js'
import { OpenedMail } from '../messages/opened-mail.js'
import { Views } from '../views.js'

/** The events of messages that were received. */
@Injectable()
export class ReceivedEvents {
  constructor(
    private readonly views: Views,
    private readonly reader: MessageReader,
    private readonly opened: OpenedMail,
    private readonly readings: FirstReadings,
  ) {}

  /**
   * The JSON of an event. Null if the message is deleted, or the inbox has ended. Throws ViewsCatchingUpError if the
   * views are not complete, since they show a deleted message until they reach its deletion; and the errors of `read`.
   */
  bodyOf(
    inbox: ActiveInbox,
    message: { id: MessageId; time: Date },
    inboxesPath: string,
    read: MailRead,
  ): Promise<string | null> {
    return this.views.readComplete(inbox.id, () => this.readBody(inbox, message, inboxesPath, read))
  }

  private async readBody(
    inbox: ActiveInbox,
    { id: messageId, time }: { id: MessageId; time: Date },
    inboxesPath: string,
    read: MailRead,
  ): Promise<string | null> {
    // The cached JSON may be of a deleted message, so the row is read first.
    const { id: inboxId } = inbox
    const [row, lookup] = await Promise.all([
      this.views.inboxes.message({ inboxId, messageId }),
      this.views.vault.find(inboxId),
    ])
    if (row?.message.state !== 'present' || lookup.state === 'forgotten') return null
    if (lookup.state === 'unknown') throw beingDeleted(inboxId)
    const { message } = row
    const name = `${messageId} ${inboxesPath}`
    let json = this.opened.events.get(inboxId, name)
    if (json === null) {
      await read.pace(message.size)
      // Another stream may have opened it in the meantime.
      json = this.opened.events.get(inboxId, name)
    }
    if (json === null) {
      const opened = await this.reader.open(lookup.key, inboxId, message)
      if (opened === null) return null
      json = messageBody(time, opened, inboxesPath)
      this.opened.events.set(inboxId, name, json, 2 * json.length)
    }
    this.readings.note(inbox, [message])
    return json
  }
}
