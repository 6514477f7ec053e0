import { Injectable } from '@nestjs/common'
import { memberIdOf, type Account, type ApiKey } from '#libs/domain/account/account.js'
import { generateSecret, prefixOf } from '#libs/domain/account/access.js'
import { mayUseEnvironment } from '#libs/domain/account/member.js'
import { daysAfter, DEFAULT_KEY_DAYS } from '#libs/domain/account/key-expiry.js'
import { KeyUse } from '#libs/ports/key-use/key-use.js'
import type { ListQuery } from '#libs/ports/read-model/lists.js'
import { isId, type AccountId, type KeyId } from '#libs/domain/ids/typeid.js'
import { hashSecret } from '#libs/ports/key-vault/master-key.js'
import { type Principal, actorOf, missingScope, requireMayGive } from '../access/principal.js'
import { Plans } from '../access/key-lookup.js'
import type { Minting } from '../idempotency/minting.js'
import { AccountCommands } from '../accounts/account-commands.js'
import { Instance } from '../instance.js'
import { invalid, noResource, unavailable } from '../http/problems.js'
import { Views } from '../views.js'
import { Usage } from '../usage/usage.service.js'
import { UNUSED, type KeyUses, type NewKey } from './key-schemas.js'
import { readExpiry, type IssueKey, type RotateKey } from './key-requests.dto.js'
import { readGrace } from '../http/rules.js'

/** The first key of an account with API access. It can issue all others. */
const FIRST_KEY = {
  name: 'admin',
  environment: 'production',
  scopes: ['admin'],
  owner: 'service',
  rateLimit: null,
  expiresAt: null,
} satisfies Partial<ApiKey>

/** Other requests may rotate the same key at the same time. More than this many in a row is unlikely. */
const MAX_ATTEMPTS = 5

@Injectable()
export class Keys {
  constructor(
    private readonly views: Views,
    private readonly commands: AccountCommands,
    private readonly instance: Instance,
    private readonly plans: Plans,
    private readonly keyUse: KeyUse,
    private readonly usage: Usage,
  ) {}

  /** Resolves once the key is durable and works on this instance. Throws not-found if the account does not exist. */
  async issue(principal: Principal, accountId: string, body: IssueKey, minting: Minting): Promise<NewKey> {
    requireMayGive(principal, body.scopes)
    requireMayOwn(principal, accountId, body)
    const account = await this.commands.find(accountId)
    const { name, environment, scopes, owner, rate_limit: rateLimit = null } = body
    const now = this.instance.now()
    const wanted = readExpiry(body)
    const expiresAt = wanted === undefined ? daysAfter(now, DEFAULT_KEY_DAYS) : wanted
    const facts = { keyId: minting.id('key'), name, environment, scopes, owner, rateLimit, expiresAt }
    return this.issueTo(principal, account, facts, { minting, now })
  }

  /** Issues a key of scope `admin`, as `issue` does. Null if the account has another one. */
  async issueFirst(principal: Principal, account: Account, minting: Minting): Promise<NewKey | null> {
    const keyId = minting.id('key')
    const active = await this.views.accounts.activeKeys(account.id)
    // An earlier run of the request may have issued it.
    const isIssued = active.some(({ id }) => id === keyId)
    if (!isIssued && active.some(({ scopes }) => scopes.includes('admin'))) return null
    return this.issueTo(principal, account, { keyId, ...FIRST_KEY }, { minting, now: this.instance.now() })
  }

  private async issueTo(
    principal: Principal,
    account: Account,
    facts: Pick<ApiKey, 'name' | 'environment' | 'scopes' | 'owner' | 'rateLimit' | 'expiresAt'> & {
      keyId: KeyId
    },
    { minting, now }: { minting: Minting; now: Date },
  ): Promise<NewKey> {
    const { keyId, environment } = facts
    const { id: accountId } = account
    const { accounts } = this.views
    const [key, active] = await Promise.all([accounts.key(keyId), accounts.activeKeys(accountId)])
    const secret = generateSecret(environment, (count) => minting.bytes(count))
    const command = {
      type: 'IssueApiKey',
      ...{ accountId, ...facts, secretHash: hashSecret(secret), prefix: prefixOf(secret) },
      createdBy: principal.member?.id ?? principal.keyId,
      ...{ plan: this.plans.of(account), activeKeys: active.length, now },
    } as const
    await this.commands.execute({ account, key }, command, { ...principal, environment })
    return { key: await this.findRecorded(keyId), secret, uses: { lastUsedAt: null, usage: UNUSED } }
  }

  /** Those that the caller may see, including revoked and expired ones. */
  list({ accountId, scopes, member }: Principal, query: ListQuery<KeyId>): Promise<ApiKey[]> {
    const holder = member === null || scopes.includes('admin') ? accountId : member.id
    return this.views.readAccounts((accounts) => accounts.listKeys(holder, query))
  }

  /** Throws not-found, also for keys of other accounts, and for a member without `admin` those of other members. */
  async get(principal: Principal, id: string): Promise<ApiKey> {
    const key = isId('key', id) ? await this.views.readAccounts((accounts) => accounts.key(id)) : null
    const { accountId, scopes, member } = principal
    const isShown = scopes.includes('admin') || (key !== null && memberIdOf(key) === member?.id)
    if (key?.accountId === accountId && isShown) return key
    throw noResource('key', id)
  }

  /** Resolves once the new secret works on this instance, and the previous one only for its grace period. */
  async rotate(principal: Principal, id: string, body: RotateKey, minting: Minting): Promise<NewKey> {
    const { accounts } = this.views
    let key = await this.get(principal, id)
    // The caller gets the secret, and with it the scopes of the key.
    requireMayGive(principal, key.scopes)
    if (key.owner === 'personal' && memberIdOf(key) !== principal.member?.id) {
      throw missingScope('Only its member can rotate a personal key.', [])
    }
    const { id: keyId, accountId, environment } = key
    // Read before the change, since a failure after it would lose the answer with the new secret.
    const uses = await this.useOf(key)
    const secret = generateSecret(environment, (count) => minting.bytes(count))
    const secretHash = hashSecret(secret)
    const account = await accounts.account(accountId)
    const expiresAt = readExpiry(body)
    const rotation = { secretHash, prefix: prefixOf(secret), graceMs: readGrace(body.grace) }
    for (let attempts = 0; (await accounts.keyByHash(secretHash))?.key.id !== keyId; attempts += 1) {
      if (attempts === MAX_ATTEMPTS) throw unavailable('catching-up', 'Other requests are rotating the key.')
      const now = this.instance.now()
      const command = { type: 'RotateApiKey', accountId, keyId, ...rotation, expiresAt, now } as const
      await this.commands.execute({ account, key }, command, { ...principal, environment })
      key = await this.findRecorded(keyId)
    }
    return { key, secret, uses }
  }

  /** Resolves once the key no longer works on this instance. A repeat resolves with the same key. */
  async revoke(principal: Principal, id: string): Promise<ApiKey> {
    const key = await this.get(principal, id)
    const { id: keyId, accountId, environment } = key
    const account = await this.commands.find(accountId)
    const memberId = memberIdOf(key)
    const isOfOther = memberId !== null && memberId !== principal.member?.id
    if (isOfOther && account.owners.includes(memberId) && !actorOf(principal, account).isOwner) {
      throw missingScope('Only an owner can revoke a personal key of an owner.', [])
    }
    const now = this.instance.now()
    const command = { type: 'RevokeApiKey', accountId, keyId, revokedBy: principal.keyId, now } as const
    await this.commands.execute({ account, key }, command, { ...principal, environment })
    return this.findRecorded(keyId)
  }

  async useOf(key: ApiKey): Promise<KeyUses> {
    return (await this.usesOf(key.accountId, [key]))(key)
  }

  /** Returns a function that has the usage of each of the keys, which must belong to one account. */
  async usesOf(accountId: AccountId, keys: readonly ApiKey[]): Promise<(key: ApiKey) => KeyUses> {
    const ids = keys.map(({ id }) => id)
    const [lastUses, totals] = await Promise.all([
      this.keyUse.lastUsedAt(ids),
      this.usage.totals(accountId, ids),
    ])
    return ({ id }) => ({
      lastUsedAt: lastUses.get(id) ?? null,
      usage: totals === null ? null : (totals.get(id) ?? UNUSED),
    })
  }

  /** A recorded key is missing only if the views were lost in the meantime and are being rebuilt. */
  private async findRecorded(keyId: KeyId): Promise<ApiKey> {
    const key = await this.views.accounts.key(keyId)
    if (key === null) throw unavailable('catching-up', `The key ${keyId} can't be read yet.`)
    return key
  }
}

/**
 * Throws missing-scope if the caller may not issue such a key: a member without `admin` only personal ones, in its own
 * environments; and invalid-request for a personal key without a member.
 */
function requireMayOwn(
  { member, accountId: own, scopes }: Principal,
  accountId: string,
  wanted: IssueKey,
): void {
  const { owner, environment } = wanted
  if (owner === 'service') {
    if (member === null || scopes.includes('admin')) return
    throw missingScope('Without the scope admin, a member can only issue personal keys.', ['admin'])
  }
  if (member === null || accountId !== own) {
    const detail = 'owner can be personal only if a member of the account is signed in'
    throw invalid({ detail, pointer: '/owner' })
  }
  if (mayUseEnvironment(member, environment)) return
  throw missingScope(`The member may not use the environment ${environment}.`, [])
}
