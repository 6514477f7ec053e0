import { decodeBatch } from '#libs/event-log/decode-batch.js'
import type { EventLog, PartitionRange } from '#libs/event-log/event-log.js'
import { inboxEventCodec } from '#libs/event-log/inbox-events.js'
import type { Inbox } from '#libs/inbox/inbox.js'
import type { InboxQueries } from '#libs/read-model/queries.js'
import type { Watermark } from '#libs/read-model/watermark.js'
import type { InboxId } from '#libs/typeid/typeid.js'
import type { Webhook } from '#libs/webhook/webhook.js'
import { happeningsIn } from './matching.js'
import type { Requests } from './requests.js'

export interface BackfillOptions {
  log: Pick<EventLog, 'topology' | 'read' | 'partitionCount'>
  inboxes: Pick<InboxQueries, 'inbox' | 'listInboxes' | 'listMessages'>
  watermark: Pick<Watermark, 'mustHavePassed'>
  requests: Requests
  now: () => Date
}

const TOPIC = 'inbox-events'
const SHOWN_WITHIN_MS = 10_000
const INBOXES_AT_ONCE = 100
const MESSAGES_AT_ONCE = 500

/**
 * Asks for what a webhook is to be told that nobody else asks for: what came between its registration and the moment
 * from which the views show it to the matchers, and what its inboxes held before, where it wants that. What is asked
 * for by both is delivered once.
 */
export class Backfill {
  constructor(private readonly options: BackfillOptions) {}

  /** To be called once the views show the webhook. Rejects where the views or the log can't tell yet. */
  async run(webhook: Webhook): Promise<void> {
    const { partitions } = await this.options.log.topology(TOPIC)
    const behind = partitions.flatMap(({ partition, end }) => {
      const since = webhook.positions.find((position) => position.partition === partition)
      return since === undefined ? [] : [{ topic: TOPIC, partition, first: since.offset, end } as const]
    })
    await Promise.all(behind.map((range) => this.mustShow(range)))
    for (const range of behind) await this.askForRange(webhook, range)
    if (webhook.startFrom !== 'now') await this.askForHeld(webhook)
  }

  /** What is told is read from the views. */
  private async mustShow({ topic, partition, end }: PartitionRange): Promise<void> {
    if (end === 0) return
    await this.options.watermark.mustHavePassed({ topic, partition, offset: end - 1 }, SHOWN_WITHIN_MS)
  }

  private async askForRange(webhook: Webhook, range: PartitionRange): Promise<void> {
    const { log, requests } = this.options
    const { topic, partition } = range
    if (range.first >= range.end) return
    for await (const records of log.read(range)) {
      const batch = { topic, partition, from: range.first, next: range.end, records }
      const { events } = decodeBatch(inboxEventCodec, batch, log.partitionCount(topic))
      const happenings = happeningsIn(events, partition)
      await requests.ask(happenings, [webhook])
    }
  }

  private async askForHeld(webhook: Webhook): Promise<void> {
    if (!webhook.events.includes('message.received')) return
    if (webhook.inboxId !== null) {
      const row = await this.options.inboxes.inbox(webhook.inboxId)
      if (row?.inbox.state === 'active') await this.askForMail(webhook, webhook.inboxId)
      return
    }
    for await (const { id, isProtected } of this.inboxesOf(webhook)) {
      if (!isProtected) await this.askForMail(webhook, id)
    }
  }

  private async *inboxesOf({ accountId, environment }: Webhook): AsyncGenerator<Inbox> {
    const { inboxes, now } = this.options
    const query = { accountId, environment, state: 'active', labels: [], order: 'asc' } as const
    let after: InboxId | null = null
    for (;;) {
      const some: Inbox[] = await inboxes.listInboxes({ ...query, after, limit: INBOXES_AT_ONCE, now: now() })
      yield* some
      after = some.at(-1)?.id ?? null
      if (some.length < INBOXES_AT_ONCE) return
    }
  }

  private async askForMail(webhook: Webhook, inboxId: InboxId): Promise<void> {
    const { inboxes, requests } = this.options
    const sinceMs = webhook.startFrom instanceof Date ? webhook.startFrom.getTime() : 0
    let from = 0
    for (;;) {
      const query = {
        inboxId,
        order: 'asc',
        from,
        to: Number.MAX_SAFE_INTEGER,
        limit: MESSAGES_AT_ONCE,
      } as const
      const rows = await inboxes.listMessages(query)
      const asked = rows.flatMap(({ message }) => {
        if (message.state !== 'present' || message.receivedAt.getTime() < sinceMs) return []
        const { id: messageId, receivedAt: occurredAt } = message
        return [
          { webhook, notification: { type: 'message.received', inboxId, messageId, occurredAt } as const },
        ]
      })
      await requests.append(asked)
      from = (rows.at(-1)?.offset ?? 0) + 1
      if (rows.length < MESSAGES_AT_ONCE) return
    }
  }
}
