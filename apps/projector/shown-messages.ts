import type { DecodedBatch } from '#libs/ports/event-log/decode-batch.js'
import type { Partition } from '#libs/ports/event-log/event-log.js'
import type { InboxEvent } from '#libs/domain/inbox/events.js'
import type { InboxQueries } from '#libs/ports/read-model/queries.js'
import type { UsageRecorder } from '#libs/ports/usage/usage-recorder.js'

export interface ShownMessagesOptions {
  usage: Pick<UsageRecorder, 'record'>
  queries: Pick<InboxQueries, 'progress'>
  now: () => Date
}

/**
 * Tells whoever counts usage when messages came into the views. Views that are built anew show what had been shown
 * before: up to their target nothing is told.
 */
export class ShownMessages {
  private readonly targets = new Map<number, number>()

  constructor(private readonly options: ShownMessagesOptions) {}

  /** To be called where a partition's views have been begun. */
  async begin({ topic, partition }: Partition): Promise<void> {
    if (topic !== 'inbox-events') return
    const progress = await this.options.queries.progress({ topic, partition })
    this.targets.set(partition, progress?.target ?? Infinity)
  }

  record({ partition }: Partition, events: DecodedBatch<InboxEvent>['events']): void {
    const { usage, now } = this.options
    const target = this.targets.get(partition) ?? Infinity
    const shownAt = now()
    for (const { offset, recorded } of events) {
      const { event } = recorded
      if (event.type !== 'MessageReceived' || event.inbox === null || offset < target) continue
      const { inboxId, messageId, receivedAt, inbox } = event
      const { labels } = inbox
      const keyId = recorded.keyId ?? inbox.keyId
      usage.record({ type: 'MessageShown', keyId, labels, inboxId, messageId, receivedAt, shownAt }, recorded)
    }
  }
}
