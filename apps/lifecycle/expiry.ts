import type { Logger } from 'pino'
import type { Counter } from 'prom-client'
import type { InboxId } from '#libs/domain/ids/typeid.js'
import { decide } from '#libs/domain/inbox/decide.js'
import type { Recorder } from '#libs/ports/event-log/cloud-event.js'
import type { ConsistentViews } from '#libs/ports/read-model/consistent-views.js'
import type { MailQueries } from '#libs/ports/read-model/queries.js'

export interface ExpiryOptions {
  views: Pick<ConsistentViews, 'isComplete'>
  inboxes: MailQueries
  recorder: Recorder
  now: () => Date
  logger: Logger
  metrics: { expired: Counter }
}

const BATCH_SIZE = 500

/**
 * Ends inboxes that have expired, including those that expired while no lifecycle process ran. Several processes may
 * run at once: a second InboxExpired for the same inbox has no effect.
 */
export class Expiry {
  constructor(private readonly options: ExpiryOptions) {}

  /** Never rejects: errors are logged. */
  async expireAllDue(signal: AbortSignal): Promise<void> {
    let hasMore = true
    while (hasMore && !signal.aborted) hasMore = await this.expireDue()
  }

  /** Returns whether more inboxes may be due. */
  private async expireDue(): Promise<boolean> {
    const { inboxes, now, logger, metrics } = this.options
    try {
      const due = await inboxes.leaseDue({ now: now(), limit: BATCH_SIZE })
      const ended = await Promise.all(due.map((inboxId) => this.expire(inboxId)))
      const count = ended.filter(Boolean).length
      if (count > 0) logger.info({ inboxes: count }, 'inboxes have expired')
      metrics.expired.inc(count)
      return due.length === BATCH_SIZE
    } catch (error) {
      // Once the leases have expired, the inboxes are due again.
      logger.error({ err: error }, 'ending due inboxes failed: retrying')
      return false
    }
  }

  private async expire(inboxId: InboxId): Promise<boolean> {
    const { views, inboxes, recorder, now } = this.options
    // While the views catch up, the log may already hold an event that ended the inbox.
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
