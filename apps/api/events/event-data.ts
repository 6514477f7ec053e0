import { Injectable } from '@nestjs/common'
import type { MessageId } from '#libs/domain/ids/typeid.js'
import { INBOX_EVENTS } from '#libs/domain/inbox/events.js'
import type { ActiveInbox, Inbox } from '#libs/domain/inbox/inbox.js'
import { bodyWithoutMail, messageBody } from '#libs/mail/json/message-json.js'
import type { MailRead } from '../http/budgets.js'
import { beingDeleted } from '../inboxes/inboxes.service.js'
import { Instance } from '../instance.js'
import { FirstReadings, MessageReader } from '../messages/message-reader.js'
import { OpenedMail } from '../messages/opened-mail.js'
import { Views } from '../views.js'
import type { FeedEntry } from './event-feed.js'

/** Writes events as JSON. */
@Injectable()
export class EventData {
  readonly now: () => Date

  constructor(
    readonly views: Views,
    private readonly reader: MessageReader,
    private readonly opened: OpenedMail,
    private readonly readings: FirstReadings,
    { now }: Instance,
  ) {
    this.now = now
  }

  /**
   * The JSON of an event of an inbox. Null if its type is not streamed, or if it was received and is deleted, or its inbox
   * has ended. Throws ViewsCatchingUpError if the views are not complete, since they show a deleted message until they
   * reach its deletion; and the errors of `read`.
   */
  async dataOf(
    inbox: Inbox,
    { type, time, messageId }: FeedEntry,
    inboxesPath: string,
    read: MailRead,
  ): Promise<string | null> {
    const { id: inboxId, state } = inbox
    const { publicName, sent } = INBOX_EVENTS[type]
    if (sent === null) return null
    if (sent.body !== 'message') {
      return bodyWithoutMail(sent.body, { type: publicName, inboxId, messageId, occurredAt: time })
    }
    if (messageId === null || state !== 'active') return null
    return this.views.readComplete(inboxId, () =>
      this.received(inbox, { id: messageId, time }, inboxesPath, read),
    )
  }

  private async received(
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
