import { Injectable } from '@nestjs/common'
import type { MessageId } from '#libs/domain/ids/typeid.js'
import { INBOX_EVENTS } from '#libs/domain/inbox/events.js'
import type { ActiveInbox, Inbox } from '#libs/domain/inbox/inbox.js'
import { NEVER_ABORTED } from '#libs/runtime/fairness/budget.js'
import { bodyWithoutMail, messageBody } from '#libs/mail/json/message-json.js'
import { RequestBudgets } from '../http/budgets.js'
import { beingDeleted } from '../inboxes/inboxes.service.js'
import { Instance } from '../instance.js'
import { FirstReadings, MessageReader } from '../messages/message-reader.js'
import { Views } from '../views.js'
import type { FeedEntry } from './event-feed.js'

/** Lets those that read the same at the same time share one read. */
export class SharedReads {
  private readonly starting = new Map<string, Promise<unknown>>()

  /** Resolves with the result of a read of this name that starts after the call. Reads of one name are the same. */
  share<Result>(name: string, read: () => Promise<Result>): Promise<Result> {
    const found = this.starting.get(name)
    if (found !== undefined) return found as Promise<Result>
    const { promise, resolve } = Promise.withResolvers<Result>()
    this.starting.set(name, promise)
    setImmediate(() => {
      this.starting.delete(name)
      resolve(read())
    })
    return promise
  }
}

/** Reads events, and writes them as JSON. */
@Injectable()
export class EventData {
  readonly now: () => Date
  /** Of all streams of this process. */
  readonly reads = new SharedReads()

  constructor(
    readonly views: Views,
    private readonly reader: MessageReader,
    private readonly budgets: RequestBudgets,
    private readonly readings: FirstReadings,
    { now }: Instance,
  ) {
    this.now = now
  }

  /**
   * The JSON of an event of an inbox. Null if its type is not streamed, or if it was received and is deleted, or its inbox
   * has ended. Throws ViewsCatchingUpError if the views are not complete, since they show a deleted message until they
   * reach its deletion; and the errors of `readFor`.
   */
  async dataOf(
    inbox: Inbox,
    { type, time, messageId }: FeedEntry,
    inboxesPath: string,
  ): Promise<string | null> {
    const { id: inboxId, state } = inbox
    const { publicName, sent } = INBOX_EVENTS[type]
    if (sent === null) return null
    if (sent.body !== 'message') {
      return bodyWithoutMail(sent.body, { type: publicName, inboxId, messageId, occurredAt: time })
    }
    if (messageId === null || state !== 'active') return null
    return this.reads.share(`${messageId} ${inboxesPath}`, () =>
      this.views.readComplete(inboxId, () => this.received(inbox, { id: messageId, time }, inboxesPath)),
    )
  }

  private async received(
    inbox: ActiveInbox,
    { id: messageId, time }: { id: MessageId; time: Date },
    inboxesPath: string,
  ): Promise<string | null> {
    const { id: inboxId, accountId } = inbox
    const [row, lookup] = await Promise.all([
      this.views.inboxes.message({ inboxId, messageId }),
      this.views.vault.find(inboxId),
    ])
    if (row?.message.state !== 'present' || lookup.state === 'forgotten') return null
    if (lookup.state === 'unknown') throw beingDeleted(inboxId)
    const { message } = row
    const opened = await this.budgets.readFor(accountId, NEVER_ABORTED, async (read) => {
      await read.pace(message.size)
      return this.reader.open(lookup.key, inboxId, message)
    })
    if (opened === null) return null
    this.readings.note(inbox, message)
    return messageBody(time, opened, inboxesPath)
  }
}
