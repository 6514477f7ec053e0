import { Injectable } from '@nestjs/common'
import type { ActiveInbox } from '#libs/inbox/inbox.js'
import type { HistoryEntry } from '#libs/read-model/history.js'
import { writeMessageCursor } from '../http/cursor.js'
import { Views } from '../http/views.js'
import { InboxContext, comingToItsEnd } from '../inboxes/inboxes.service.js'
import { EVENT_NAMES } from '../history/history-json.js'
import { MessageReader } from '../messages/message-reader.js'
import { inboxEndBody, messageBody, messageDeletedBody } from './event-body.js'
import type { EventText } from './event-stream-text.js'

/** Entries of the history at a time: they are small, and what they stand for is opened one by one. */
export const PAGE = 50

/** What an inbox's stream tells, in the order of its history. */
@Injectable()
export class InboxFeed {
  constructor(
    private readonly views: Views,
    private readonly reader: MessageReader,
    private readonly context: InboxContext,
  ) {}

  /** At most PAGE entries from an offset on. In views that are being rebuilt they are true too, if not all. */
  entriesFrom({ id: inboxId }: ActiveInbox, from: number): Promise<HistoryEntry[]> {
    const to = Number.MAX_SAFE_INTEGER
    return this.views.inboxes.history({ inboxId, order: 'asc', from, to, limit: PAGE })
  }

  /** Past it an inbox has ended, whether or not its end is in the history yet. */
  msLeftOf({ expiresAt }: ActiveInbox): number {
    return expiresAt.getTime() - this.context.now().getTime()
  }

  /**
   * What a client is told of an entry. Null where that is nothing: a message that is there no more, whose deletion or
   * whose inbox's end comes further on, or what came to an inbox that is past its time. Throws catching-up where it
   * can't be told yet.
   */
  async tell(inbox: ActiveInbox, entry: HistoryEntry, family: string): Promise<EventText | null> {
    const data = await this.dataOf(inbox, entry, family)
    const id = writeMessageCursor(inbox.id, { from: entry.offset + 1, to: null, end: null })
    return data === null ? null : { id, event: EVENT_NAMES[entry.type], data }
  }

  private async dataOf(inbox: ActiveInbox, entry: HistoryEntry, family: string): Promise<string | null> {
    switch (entry.type) {
      case 'InboxDeleted':
      case 'InboxExpired':
        return inboxEndBody(entry, inbox.id)
      case 'MessageDeleted':
        return this.msLeftOf(inbox) > 0 ? messageDeletedBody(entry, inbox.id) : null
      case 'MessageReceived':
        return this.msLeftOf(inbox) > 0 ? this.received(inbox, entry, family) : null
      case 'InboxCreated':
        return null
    }
  }

  private async received(inbox: ActiveInbox, entry: HistoryEntry, family: string): Promise<string | null> {
    const { id: inboxId } = inbox
    const { messageId, time: receivedAt, size } = entry
    if (messageId === null || size === null) throw new TypeError(`the entry ${entry.id} lacks its message`)
    // Views that are being rebuilt show a deleted message until they come to its deletion: it is known before and after.
    await this.views.mustKnow(inboxId)
    const lookup = await this.views.vault.find(inboxId)
    if (lookup.state === 'unknown') throw comingToItsEnd(inboxId)
    const message = { state: 'present', id: messageId, receivedAt, size } as const
    const opened = lookup.state === 'known' ? await this.reader.open(lookup.key, inboxId, message) : null
    await this.views.mustKnow(inboxId)
    return opened === null ? null : messageBody(entry, opened, family)
  }
}
