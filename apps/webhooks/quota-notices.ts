import { LRUCache } from 'lru-cache'
import { planOf, type PlanTable } from '#libs/domain/account/access.js'
import { quotasOf, reachedPercent, resetOf } from '#libs/domain/account/quota.js'
import type { AccountId, DeliveryId } from '#libs/domain/ids/typeid.js'
import type { QuotaNotification } from '#libs/domain/webhook/events.js'
import type { Webhook } from '#libs/domain/webhook/webhook.js'
import { usedQuotas, type UseQueries } from '#libs/ports/read-model/account-quotas.js'
import type { ConsistentViews } from '#libs/ports/read-model/consistent-views.js'
import type { AccountQueries, WebhookQueries } from '#libs/ports/read-model/queries.js'
import { SharedRun } from '#libs/runtime/timing.js'
import { deliveryIdOf, type DeliveryRequests } from './matching.js'

export interface QuotaNoticesOptions extends UseQueries {
  accounts: UseQueries['accounts'] & Pick<AccountQueries, 'account'>
  webhooks: UseQueries['webhooks'] & Pick<WebhookQueries, 'quotaWebhooks'>
  views: Pick<ConsistentViews, 'readLatest' | 'readComplete'>
  plans: PlanTable
  requests: Pick<DeliveryRequests, 'append'>
  now: () => Date
}

const MAX_REMEMBERED = 10_000

/** Requests deliveries of `quota.reached`, at most once a day for each webhook, quota, limit and percentage. */
export class QuotaNotices {
  /** What is requested again after a restart is delivered once all the same. */
  private readonly requested = new LRUCache<DeliveryId, true>({ max: MAX_REMEMBERED })
  /** The accounts that the next lookup is for. */
  private accountIds: AccountId[] = []
  /** Batches of different partitions arrive together, and share a lookup. */
  private readonly lookup = new SharedRun(() => this.lookUpWebhooks(), 0)

  constructor(private readonly options: QuotaNoticesOptions) {}

  /**
   * Checks the quotas of accounts. `shown` is only called if one of them has a webhook for that, and resolves once the
   * views show what the accounts have used. Resolves with the number of deliveries, once they are durable. Rejects if the
   * views are not complete.
   */
  async request(accountIds: readonly AccountId[], shown: () => Promise<unknown>): Promise<number> {
    this.accountIds.push(...accountIds)
    const found = await this.lookup.get()
    const webhooks = found.filter(({ accountId }) => accountIds.includes(accountId))
    if (webhooks.length === 0) return 0
    await shown()
    const byAccount = [...Map.groupBy(webhooks, ({ accountId }) => accountId)]
    const wanted = await Promise.all(
      byAccount.map(async ([accountId, own]) => {
        const reached = await this.reached(accountId)
        return own.flatMap((webhook) => reached.map((notification) => ({ webhook, notification })))
      }),
    )
    const idOf = ({ webhook, notification }: (typeof wanted)[number][number]) =>
      deliveryIdOf(webhook.id, notification, null)
    const missing = wanted.flat().filter((each) => !this.requested.has(idOf(each)))
    await this.options.requests.append(missing)
    for (const each of missing) this.requested.set(idOf(each), true)
    return missing.length
  }

  private lookUpWebhooks(): Promise<Webhook[]> {
    const { views, webhooks } = this.options
    const ids = [...new Set(this.accountIds)]
    this.accountIds = []
    // A notice that is missed may never be requested again, since all else may be refused from then on.
    return views.readLatest('account-events', () => webhooks.quotaWebhooks(ids))
  }

  private async reached(accountId: AccountId): Promise<QuotaNotification[]> {
    const { accounts, plans, views, now } = this.options
    const account = await accounts.account(accountId)
    if (account === null) return []
    const occurredAt = now()
    const limits = quotasOf(planOf(plans, account), account.quotas)
    const used = await views.readComplete('inbox-events', () =>
      usedQuotas(this.options, accountId, limits, occurredAt),
    )
    return used.flatMap((quota) => {
      const percent = reachedPercent(quota)
      const resetsAt = resetOf(quota.quota, occurredAt)
      const about = { resetsAt, inboxId: null, messageId: null, occurredAt } as const
      return percent === null ? [] : [{ type: 'quota.reached', ...quota, percent, ...about } as const]
    })
  }
}
