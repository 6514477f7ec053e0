import { Inject, Injectable } from '@nestjs/common'
import { limitOf, WHOLE_ACCOUNT, type CountedQuota, type QuotaLimit } from '#libs/domain/account/quota.js'
import type { AccountId } from '#libs/domain/ids/typeid.js'
import type { Engine } from '#libs/engines/engine.js'
import { usedQuotas, type UsedQuota } from '#libs/ports/read-model/account-quotas.js'
import { Plans } from '../access/key-lookup.js'
import { quotaExceeded } from '../http/problems.js'
import { ENGINE, Instance } from '../instance.js'
import { Views } from '../views.js'

/** How much is used of quotas, and the check of those that the views of accounts count: webhooks, domains and members. */
@Injectable()
export class QuotaUse {
  constructor(
    private readonly views: Views,
    private readonly plans: Plans,
    private readonly instance: Instance,
    @Inject(ENGINE) private readonly engine: Pick<Engine, 'webhooks'>,
  ) {}

  /** Throws quota-exceeded if the account has as many as it may. Requests at the same time may exceed it. */
  async require(accountId: AccountId, quota: CountedQuota): Promise<void> {
    const account = await this.views.readAccounts((accounts) => accounts.account(accountId))
    if (account === null) return
    const limit = limitOf(this.plans.of(account), account.quotas, quota)
    const now = this.instance.now()
    const [found] = await this.read(accountId, [{ quota, scope: WHOLE_ACCOUNT, limit }], now)
    if (found !== undefined && found.used >= limit) throw quotaExceeded({ ...found, wanted: 1 }, now)
  }

  read(accountId: AccountId, limits: readonly QuotaLimit[], now: Date): Promise<UsedQuota[]> {
    const { inboxes } = this.views
    const { webhooks } = this.engine
    return this.views.readAccounts((accounts) =>
      usedQuotas({ inboxes, accounts, webhooks }, accountId, limits, now),
    )
  }
}
