import type { Logger } from 'pino'
import type { Recorder } from '#libs/ports/event-log/cloud-event.js'
import { decide } from '#libs/domain/inbox/inbox.js'
import type { ConsistentViews } from '#libs/ports/read-model/consistent-views.js'
import type { DueInboxes, InboxQueries } from '#libs/ports/read-model/queries.js'
import type { InboxId } from '#libs/domain/ids/typeid.js'
import type { LifecycleMetrics } from './lifecycle-metrics.js'

export interface ExpiryOptions {
  views: Pick<ConsistentViews, 'isComplete'>
  inboxes: InboxQueries & DueInboxes
  recorder: Recorder
  now: () => Date
  logger: Logger
  metrics: LifecycleMetrics
}

const CHUNK = 500

/**
 * Ends inboxes whose time is over, also those whose time came while nobody looked. Two of it may run: an inbox
 * that is ended twice has ended once.
 */
export class Expiry {
  constructor(private readonly options: ExpiryOptions) {}

  /** Deals with its own errors. */
  async expireAllDue(signal: AbortSignal): Promise<void> {
    let isMore = true
    while (isMore && !signal.aborted) isMore = await this.expireDue()
  }

  /** Whether there may be more that is due already. */
  private async expireDue(): Promise<boolean> {
    const { inboxes, now, logger, metrics } = this.options
    try {
      const due = await inboxes.leaseDue(now(), CHUNK)
      const ended = await Promise.all(due.map((inboxId) => this.expire(inboxId)))
      const count = ended.filter(Boolean).length
      if (count > 0) logger.info({ inboxes: count }, 'inboxes have expired')
      metrics.expired.inc(count)
      return due.length === CHUNK
    } catch (error) {
      // The leases run out, and the inboxes are given out again.
      logger.error({ err: error }, 'inboxes that are due could not be ended: tried again')
      return false
    }
  }

  private async expire(inboxId: InboxId): Promise<boolean> {
    const { views, inboxes, recorder, now } = this.options
    // While the views catch up, the log may have an end that they do not show.
    if (!(await views.isComplete(inboxId))) return false
    const row = await inboxes.inbox(inboxId)
    if (row === null) return false
    const command = { type: 'ExpireInbox', inboxId, now: now() } as const
    const { events } = decide({ inbox: row.inbox, message: null }, command)
    const { accountId, environment } = row.inbox
    for (const event of events) await recorder.record(event, { accountId, environment, keyId: null })
    return events.length > 0
  }
}
