import { LRUCache } from 'lru-cache'
import type { Inbox } from '#libs/domain/inbox/inbox.js'
import type { MessageId } from '#libs/domain/ids/typeid.js'
import type { UsageRecorder } from '#libs/ports/usage/usage-recorder.js'

/** A few megabytes of ids. If one is forgotten, its message is recorded again, but later readings do not count. */
const MAX_REMEMBERED = 50_000

/** Records when a message was first in an answer of this process. */
export class FirstReadings {
  private readonly read = new LRUCache<MessageId, true>({ max: MAX_REMEMBERED })

  constructor(
    private readonly usage: Pick<UsageRecorder, 'record'>,
    private readonly now: () => Date,
  ) {}

  note(
    { id: inboxId, keyId, labels, accountId, environment }: Inbox,
    messages: readonly { id: MessageId; receivedAt: Date }[],
  ): void {
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
