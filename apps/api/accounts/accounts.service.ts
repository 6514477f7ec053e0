import { Injectable } from '@nestjs/common'
import type { Account } from '#libs/domain/account/account.js'
import { decide } from '#libs/domain/account/decide.js'
import type { AccountLimits, Plan } from '#libs/domain/account/plan.js'
import type { ListQuery } from '#libs/ports/read-model/queries.js'
import { isId, type AccountId } from '#libs/domain/ids/typeid.js'
import { type Principal, KnownKeys } from '../access/authenticator.js'
import type { Minting } from '../access/minting.js'
import { Plans } from '../access/plans.js'
import { Changes } from '../changes.js'
import { Instance } from '../instance.js'
import { invalid, notFound } from '../http/problems.js'
import { Views } from '../http/views.js'
import type { NewKey } from '../keys/key-schemas.js'
import { Keys, refused } from '../keys/keys.service.js'
import type { AccountFacts } from './account-schemas.js'
import { readLimits, type ChangeAccount, type OpenAccount } from './account-requests.dto.js'

/** What every account with API access begins with: it can issue all others. */
const FIRST_KEY = { name: 'admin', environment: 'production', scopes: ['admin'], rateLimit: null } as const

@Injectable()
export class Accounts {
  constructor(
    private readonly views: Views,
    private readonly changes: Changes,
    private readonly instance: Instance,
    private readonly plans: Plans,
    private readonly knownKeys: KnownKeys,
    private readonly keys: Keys,
  ) {}

  /** Resolves once the account is durable and can be read, with its first key where the plan has API access. */
  async open(
    principal: Principal,
    { name, plan: planName, limits }: OpenAccount,
    minting: Minting,
  ): Promise<{ facts: AccountFacts; key: NewKey | null }> {
    const plan = this.planNamed(planName)
    const accountId = minting.id('acc')
    const wanted = limits == null ? null : readLimits(limits)
    const slice = { account: await this.views.accounts.account(accountId), key: null }
    const now = this.instance.now()
    const command = { type: 'OpenAccount', accountId, name, plan, limits: wanted, now } as const
    await this.record(principal, accountId, decide(slice, command))
    const key = await this.firstKey(principal, accountId, minting)
    return { facts: await this.factsOf(await this.find(accountId)), key }
  }

  /**
   * Resolves once the change is in force on this instance. An account that has API access by then and no key of scope
   * `admin` left is given one, as a new account is: else nobody could issue any.
   */
  async change(
    principal: Principal,
    id: string,
    { plan: planName, limits }: ChangeAccount,
    minting: Minting,
  ): Promise<{ facts: AccountFacts; key: NewKey | null }> {
    if (planName === undefined && limits === undefined) {
      throw invalid({ detail: 'plan or limits must be given', pointer: '' })
    }
    const account = await this.find(id)
    const plan = this.planNamed(planName ?? account.plan)
    if (account.id === principal.accountId && planName !== undefined && !plan.hasApiAccess) {
      const detail = `the plan ${plan.name} has no API access: it would end that of the key that asks`
      throw invalid({ detail, pointer: '/plan' })
    }
    const now = this.instance.now()
    const wanted = limitsAfter(account, plan, limits)
    const command = { type: 'ChangePlan', accountId: account.id, plan, limits: wanted, now } as const
    await this.record(principal, account.id, decide({ account, key: null }, command))
    this.knownKeys.forgetAll()
    const key = await this.firstKey(principal, account.id, minting)
    return { facts: await this.factsOf(await this.find(account.id)), key }
  }

  /** Throws not-found. */
  async get(id: string): Promise<AccountFacts> {
    return this.factsOf(await this.find(id))
  }

  list(query: ListQuery<AccountId>): Promise<Account[]> {
    return this.views.readComplete('account-events', () => this.views.accounts.listAccounts(query))
  }

  async factsOf(account: Account): Promise<AccountFacts> {
    const { plans } = this
    const { maxMessageBytes } = this.instance.settings
    const keys = await this.views.accounts.activeKeys(account.id)
    const environments = [...new Set(keys.map(({ environment }) => environment))].sort()
    return { account, plan: plans.isKnown(account) ? plans.of(account) : null, environments, maxMessageBytes }
  }

  private async firstKey(
    principal: Principal,
    accountId: AccountId,
    minting: Minting,
  ): Promise<NewKey | null> {
    const account = await this.find(accountId)
    if (!this.plans.of(account).hasApiAccess) return null
    return this.keys.issueUnless(principal, account, FIRST_KEY, minting, (keys) =>
      keys.some(({ scopes }) => scopes.includes('admin')),
    )
  }

  private async record(
    { environment, keyId }: Principal,
    accountId: AccountId,
    { events, refusal }: ReturnType<typeof decide>,
  ): Promise<void> {
    if (refusal !== null) throw refused(refusal, accountId)
    await this.changes.record(events, { accountId, environment, keyId })
  }

  private async find(id: string): Promise<Account> {
    const account = isId('acc', id)
      ? await this.views.readComplete('account-events', () => this.views.accounts.account(id))
      : null
    if (account === null) throw notFound(`There is no account ${id.slice(0, 60)}.`)
    return account
  }

  private planNamed(name: string): Plan {
    const { plans } = this
    const plan = plans.named(name)
    if (plan !== null) return plan
    throw invalid({ detail: `plan must be one of ${plans.names.join(', ')}`, pointer: '/plan' })
  }
}

/** Those that are given; else those that the account has, as long as it stays on its plan. */
function limitsAfter(account: Account, plan: Plan, given: ChangeAccount['limits']): AccountLimits | null {
  if (given !== undefined) return given === null ? null : readLimits(given)
  return account.plan === plan.name ? account.limits : null
}
