import { Inject, Injectable } from '@nestjs/common'
import { limitOf, WHOLE_ACCOUNT, type CountedQuota } from '#libs/domain/account/quota.js'
import type { AccountId } from '#libs/domain/ids/typeid.js'
import type { Engine } from '#libs/engines/engine.js'
import { Plans } from '../access/key-lookup.js'
import { quotaExceeded } from '../http/problems.js'
import { ENGINE } from '../instance.js'
import { Views } from '../views.js'

/** The quotas of what the views of accounts count: webhooks, domains and members. */
@Injectable()
export class CountedQuotas {
  constructor(
    private readonly views: Views,
    private readonly plans: Plans,
    @Inject(ENGINE) private readonly engine: Pick<Engine, 'webhooks'>,
  ) {}

  /** Throws quota-exceeded if the account has as many as it may. Requests at the same time may exceed it. */
  async require(accountId: AccountId, quota: CountedQuota): Promise<void> {
    const account = await this.views.readAccounts((accounts) => accounts.account(accountId))
    if (account === null) return
    const limit = limitOf(this.plans.of(account), account.quotas, quota)
    const used = await this.used(accountId, quota)
    if (used >= limit) throw quotaExceeded({ quota, scope: WHOLE_ACCOUNT, limit, used }, 1)
  }

  used(accountId: AccountId, quota: CountedQuota): Promise<number> {
    return this.views.readAccounts(async (accounts) => {
      if (quota === 'webhooks') return this.engine.webhooks.countWebhooks(accountId)
      const all = quota === 'domains' ? accounts.domainNames(accountId) : accounts.memberEmails(accountId)
      return (await all).length
    })
  }
}
