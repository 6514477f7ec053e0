import { Injectable } from '@nestjs/common'
import type { Account, ApiKey } from '#libs/domain/account/account.js'
import { PUBLIC_ACCOUNT_ID, type AccountLimits, type Plan } from '#libs/domain/account/access.js'
import { PersonalData } from '#libs/ports/key-vault/personal-data.js'
import type { ListQuery } from '#libs/ports/read-model/lists.js'
import type { AccountId } from '#libs/domain/ids/typeid.js'
import type { ResourceJson } from '#libs/runtime/resource.js'
import { missingScope, type Principal } from '../access/principal.js'
import { Plans } from '../access/key-lookup.js'
import type { Minting } from '../idempotency/minting.js'
import { Instance } from '../instance.js'
import { invalid } from '../http/problems.js'
import { Views } from '../views.js'
import { newKeyJson } from '../keys/key-schemas.js'
import { Keys } from '../keys/keys.service.js'
import { IdentityProviders } from '../sign-in/identity-providers.js'
import { AccountCommands } from './account-commands.js'
import type { AccountValues } from './account-schemas.js'
import { readLimits, type ChangeAccount, type OpenAccount, type SetSignIn } from './account-requests.dto.js'

type AccountWithKeyValues = AccountValues & { key: ResourceJson | null }

@Injectable()
export class Accounts {
  constructor(
    private readonly views: Views,
    private readonly commands: AccountCommands,
    private readonly instance: Instance,
    private readonly plans: Plans,
    private readonly keys: Keys,
    private readonly providers: IdentityProviders,
    private readonly personal: PersonalData,
  ) {}

  /** Resolves once the account, and its first key if the plan has API access, are durable and can be read. */
  async open(principal: Principal, body: OpenAccount, minting: Minting): Promise<AccountWithKeyValues> {
    const { plan: planName, limits } = body
    const plan = this.planNamed(planName)
    const accountId = minting.id('acc')
    const wanted = limits == null ? null : readLimits(limits)
    const account = await this.views.accounts.account(accountId)
    const name = account?.name ?? (await this.personal.seal(accountId, body.name))
    const now = this.instance.now()
    const command = { type: 'OpenAccount', accountId, name, plan, limits: wanted, now } as const
    await this.commands.execute({ account, key: null }, command, principal)
    return this.withFirstKey(principal, accountId, minting)
  }

  /** Resolves once the change applies on this instance. */
  async change(
    principal: Principal,
    id: string,
    { plan: planName, limits }: ChangeAccount,
    minting: Minting,
  ): Promise<AccountWithKeyValues> {
    if (planName === undefined && limits === undefined) {
      throw invalid({ detail: 'plan or limits must be given', pointer: '' })
    }
    const account = await this.commands.find(id)
    const plan = this.planNamed(planName ?? account.plan)
    if (account.id === principal.accountId && planName !== undefined && !plan.hasApiAccess) {
      const detail = `the plan ${plan.name} has no API access, and the key of this request belongs to the account`
      throw invalid({ detail, pointer: '/plan' })
    }
    const now = this.instance.now()
    const wanted = limitsAfter(account, plan, limits)
    const command = { type: 'ChangePlan', accountId: account.id, plan, limits: wanted, now } as const
    await this.commands.execute({ account, key: null }, command, principal)
    return this.withFirstKey(principal, account.id, minting)
  }

  /** Resolves once the change applies on this instance. A repeat changes nothing. */
  async changeAccess(
    principal: Principal,
    id: string,
    type: 'SuspendAccount' | 'ResumeAccount' | 'CloseAccount',
  ): Promise<AccountValues> {
    const account = await this.commands.find(id)
    const { id: accountId } = account
    if (type === 'CloseAccount' && accountId === PUBLIC_ACCOUNT_ID) {
      throw invalid({ detail: 'the account of public inboxes belongs to the server', parameter: 'accountId' })
    }
    if (type !== 'ResumeAccount' && accountId === principal.accountId) {
      const detail = 'the key of this request belongs to the account, and would no longer be accepted'
      throw invalid({ detail, parameter: 'accountId' })
    }
    const { keyId: by, environment } = principal
    const command = { type, accountId, by, environment, now: this.instance.now() } as const
    await this.commands.execute({ account, key: null }, command, principal)
    return this.get(id)
  }

  /**
   * Resolves once the change applies on this instance. Throws missing-scope for members who are no owners, and
   * invalid-request if nobody could sign in as an owner then.
   */
  async setSignIn(principal: Principal, { sign_in: signIn }: SetSignIn): Promise<AccountValues> {
    const { accountId, member, keyId } = principal
    const account = await this.commands.find(accountId)
    // It ends sessions of owners.
    if (member !== null && member.role !== 'owner') {
      throw missingScope('Only an owner can set how people sign in.', [])
    }
    const requiresProvider = signIn === 'provider'
    if (requiresProvider) {
      const owners = await this.views.readAccounts((views) =>
        Promise.all(account.owners.map((id) => views.member(id))),
      )
      if (!owners.some((owner) => this.providers.allows(owner?.identity ?? null, accountId))) {
        const detail = 'an owner of the account must have signed in with an identity provider first'
        throw invalid({ detail, pointer: '/sign_in' })
      }
    }
    const setBy = member?.id ?? keyId
    const command = {
      type: 'SetSignIn',
      accountId,
      requiresProvider,
      setBy,
      now: this.instance.now(),
    } as const
    await this.commands.execute({ account, key: null }, command, principal)
    return this.get(accountId)
  }

  /** Throws not-found. */
  async get(id: string): Promise<AccountValues> {
    return this.valuesOf(await this.commands.find(id))
  }

  list(query: ListQuery<AccountId>): Promise<Account[]> {
    return this.views.readAccounts((accounts) => accounts.listAccounts(query))
  }

  /** By default with the keys that are active now. */
  async valuesOf(
    account: Account,
    activeKeys?: readonly Pick<ApiKey, 'environment'>[],
  ): Promise<AccountValues> {
    const { maxMessageBytes } = this.instance.settings
    const keys = activeKeys ?? (await this.views.accounts.activeKeys(account.id))
    const environments = [...new Set(keys.map(({ environment }) => environment))].sort()
    // Without limits if the plan is not configured.
    const plan = this.plans.find(account)
    const limits = plan && { ...plan, retention: plan.retention.text, maxMessageBytes }
    const notClosed = account.suspendedAt === null ? 'active' : 'suspended'
    const state = account.closed === null ? notClosed : 'closed'
    const closedAt = account.closed?.at ?? null
    const signIn = account.requiresProvider ? 'provider' : 'any'
    const name = await this.personal.show(account.id, account.name)
    return { ...account, name, limits, environments, signIn, state, closedAt }
  }

  /** Issues a key of scope `admin`, which can issue others, if the account has API access and no such key. */
  private async withFirstKey(
    principal: Principal,
    accountId: AccountId,
    minting: Minting,
  ): Promise<AccountWithKeyValues> {
    const account = await this.commands.find(accountId)
    const { hasApiAccess } = this.plans.of(account)
    const key = hasApiAccess ? await this.keys.issueFirst(principal, account, minting) : null
    return { ...(await this.valuesOf(account)), key: key && newKeyJson(key) }
  }

  private planNamed(name: string): Plan {
    const plan = this.plans.named(name)
    if (plan !== null) return plan
    throw invalid({ detail: `plan must be one of ${this.plans.names.join(', ')}`, pointer: '/plan' })
  }
}

/** The limits in the request. Without any, the account keeps its own limits, unless its plan changes. */
function limitsAfter(account: Account, plan: Plan, requested: ChangeAccount['limits']): AccountLimits | null {
  if (requested !== undefined) return requested === null ? null : readLimits(requested)
  return account.plan === plan.name ? account.limits : null
}
