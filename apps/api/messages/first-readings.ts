import { LRUCache } from 'lru-cache'
import type { Inbox } from '#libs/domain/inbox/inbox.js'
import type { MessageId } from '#libs/domain/ids/typeid.js'
import type { UsageRecorder } from '#libs/ports/usage/usage-recorder.js'

/** A few megabytes of ids. Of one that is forgotten another reading is told, which is later and so counts for nothing. */
const MAX_REMEMBERED = 50_000

interface Read {
  id: MessageId
  receivedAt: Date
}

/** Tells when a message was first in an answer: of several instances each tells of its own first one. */
export class FirstReadings {
  private readonly read = new LRUCache<MessageId, true>({ max: MAX_REMEMBERED })

  constructor(
    private readonly usage: Pick<UsageRecorder, 'record'>,
    private readonly now: () => Date,
  ) {}

  note({ id: inboxId, keyId, labels, accountId, environment }: Inbox, messages: readonly Read[]): void {
    for (const { id: messageId, receivedAt } of messages) {
      if (this.read.has(messageId)) continue
      this.read.set(messageId, true)
      const readAt = this.now()
      this.usage.record(
        { type: 'MessageRead', keyId, inboxId, messageId, receivedAt, labels, readAt },
        { accountId, environment },
      )
    }
  }
}
