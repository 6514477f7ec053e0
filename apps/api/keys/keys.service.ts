import { Injectable } from '@nestjs/common'
import type { Account, ApiKey } from '#libs/domain/account/account.js'
import { drawSecret, prefixOf, parseGrace } from '#libs/domain/account/api-key.js'
import { decide, type Refusal } from '#libs/domain/account/decide.js'
import { KeyUse } from '#libs/ports/key-use/key-use.js'
import type { ActiveKey, ListQuery } from '#libs/ports/read-model/queries.js'
import { isId, type AccountId, type KeyId } from '#libs/domain/ids/typeid.js'
import { hashSecret } from '#libs/domain/account/secret-hash.js'
import { type Principal, KnownKeys } from '../access/authenticator.js'
import type { Minting } from '../access/minting.js'
import { Plans } from '../access/plans.js'
import { Changes } from '../changes.js'
import { Instance } from '../instance.js'
import { notFound, Problem, unavailable, invalid } from '../http/problems.js'
import { Views } from '../http/views.js'
import { Usage } from '../usage/usage.service.js'
import type { KeyUses, NewKey } from './key-schemas.js'
import type { IssueKey, RotateKey } from './key-requests.dto.js'

type KeyFacts = Pick<ApiKey, 'name' | 'environment' | 'scopes' | 'rateLimit'>

const UNUSED = { requests: 0, refusals: 0, inboxes: 0, mails: 0, bytes: 0 }

/** Others may rotate the same key at once, each ahead of this one: hardly so often. */
const MAX_ATTEMPTS = 5

@Injectable()
export class Keys {
  constructor(
    private readonly views: Views,
    private readonly changes: Changes,
    private readonly instance: Instance,
    private readonly plans: Plans,
    private readonly knownKeys: KnownKeys,
    private readonly keyUse: KeyUse,
    private readonly usage: Usage,
  ) {}

  /** Resolves once the key is durable and works on this instance. Throws not-found if there is no such account. */
  async issue(
    principal: Principal,
    accountId: string,
    { name, environment, scopes, rate_limit: rateLimit = null }: IssueKey,
    minting: Minting,
  ): Promise<NewKey> {
    mayHandOut(principal, scopes)
    const account = isId('acc', accountId)
      ? await this.views.readComplete('account-events', () => this.views.accounts.account(accountId))
      : null
    if (account === null) throw notFound(`There is no account ${accountId.slice(0, 60)}.`)
    const issued = await this.issueUnless(
      principal,
      account,
      { name, environment, scopes, rateLimit },
      minting,
      () => false,
    )
    if (issued === null) throw new Error('a key that nothing spoke against was not issued')
    return issued
  }

  /** Null if the keys that the account has make another one needless. */
  async issueUnless(
    { keyId: causedBy }: Principal,
    account: Account,
    facts: KeyFacts,
    minting: Minting,
    isNeedless: (active: readonly ActiveKey[]) => boolean,
  ): Promise<NewKey | null> {
    const keyId = minting.id('key')
    const { environment } = facts
    const secret = drawSecret(environment, (count) => minting.bytes(count))
    const { accounts } = this.views
    const accountId = account.id
    const [key, active] = await Promise.all([accounts.key(keyId), accounts.activeKeys(accountId)])
    if (key === null && isNeedless(active)) return null
    const { events, refusal } = decide(
      { account, key },
      {
        type: 'IssueApiKey',
        accountId,
        keyId,
        ...facts,
        secretHash: hashSecret(secret),
        prefix: prefixOf(secret),
        plan: this.plans.of(account),
        activeKeys: active.length,
        now: this.instance.now(),
      },
    )
    if (refusal !== null) throw refused(refusal, keyId)
    await this.record(events, { accountId, environment, keyId: causedBy })
    return { key: await this.mustFind(keyId), secret, uses: { lastUsedAt: null, usage: UNUSED } }
  }

  /** Revoked ones too. */
  list({ accountId }: Principal, query: ListQuery<KeyId>): Promise<ApiKey[]> {
    return this.views.readComplete('account-events', () => this.views.accounts.listKeys(accountId, query))
  }

  /** Throws not-found: another account's key is answered exactly as one that is not there. */
  async get({ accountId }: Principal, id: string): Promise<ApiKey> {
    const key = isId('key', id)
      ? await this.views.readComplete('account-events', () => this.views.accounts.key(id))
      : null
    if (key?.accountId === accountId) return key
    throw notFound(`There is no key ${id.slice(0, 60)}.`)
  }

  /** Resolves once the new secret works on this instance, and the one before it for its grace alone. */
  async rotate(principal: Principal, id: string, { grace }: RotateKey, minting: Minting): Promise<NewKey> {
    const { accounts } = this.views
    let key = await this.get(principal, id)
    // Whoever has the secret can do what the key may.
    mayHandOut(principal, key.scopes)
    const { id: keyId, accountId, environment } = key
    // Before the change: a secret that is in force must not be lost for it.
    const uses = await this.useOf(key)
    const secret = drawSecret(environment, (count) => minting.bytes(count))
    const secretHash = hashSecret(secret)
    const account = await accounts.account(accountId)
    for (let attempts = 0; (await accounts.keyByHash(secretHash))?.key.id !== keyId; attempts += 1) {
      if (attempts === MAX_ATTEMPTS) throw unavailable('catching-up', 'The key is being rotated by others.')
      const { events, refusal } = decide(
        { account, key },
        {
          type: 'RotateApiKey',
          accountId,
          keyId,
          secretHash,
          prefix: prefixOf(secret),
          graceMs: parseGrace(grace) ?? 0,
          now: this.instance.now(),
        },
      )
      if (refusal !== null) throw refused(refusal, id)
      await this.record(events, { accountId, environment, keyId: principal.keyId })
      key = await this.mustFind(keyId)
    }
    return { key, secret, uses }
  }

  /** Resolves once the key no longer works on this instance; a repeat resolves with the same. */
  async revoke(principal: Principal, id: string): Promise<ApiKey> {
    const key = await this.get(principal, id)
    const { id: keyId, accountId, environment } = key
    const account = await this.views.accounts.account(accountId)
    const { keyId: revokedBy } = principal
    const now = this.instance.now()
    const command = { type: 'RevokeApiKey', accountId, keyId, revokedBy, now } as const
    const { events, refusal } = decide({ account, key }, command)
    if (refusal !== null) throw refused(refusal, id)
    await this.record(events, { accountId, environment, keyId: revokedBy })
    return this.mustFind(keyId)
  }

  async useOf(key: ApiKey): Promise<KeyUses> {
    return (await this.usesOf(key.accountId, [key]))(key)
  }

  /** Of keys of one account. */
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

  private async record(
    events: ReturnType<typeof decide>['events'],
    attribution: Pick<Principal, 'accountId' | 'environment' | 'keyId'>,
  ): Promise<void> {
    await this.changes.record(events, attribution)
    this.knownKeys.forgetAll()
  }

  /** What was recorded shows; where it does not, views that were lost since are being rebuilt. */
  private async mustFind(keyId: KeyId): Promise<ApiKey> {
    const key = await this.views.accounts.key(keyId)
    if (key === null) throw unavailable('catching-up', `The key ${keyId} can not be read yet.`)
    return key
  }
}

/** Throws missing-scope if a key that may reach every account would come from one that may not. */
function mayHandOut(principal: Principal, scopes: readonly string[]): void {
  if (!scopes.includes('operator') || principal.scopes.includes('operator')) return
  throw new Problem('missing-scope', {
    detail: 'Only a key of scope operator hands out secrets of that scope.',
    headers: { 'www-authenticate': 'Bearer error="insufficient_scope", scope="operator"' },
  })
}

/** What a client is told of a refusal; `id` is the one that it asked for. */
export function refused(refusal: Refusal, id: string): Problem {
  switch (refusal.code) {
    case 'unknown-account':
      return notFound(`There is no account ${id.slice(0, 60)}.`)
    case 'unknown-key':
      return notFound(`There is no key ${id.slice(0, 60)}.`)
    case 'limits-not-per-account':
      return invalid({
        detail: `the plan ${refusal.plan} has the same limits for every account`,
        pointer: '/limits',
      })
    case 'plan-lacks-api-access':
      return new Problem('plan-lacks-api-access', { detail: `The plan ${refusal.plan} has no API access.` })
    case 'over-rate-limit':
      return invalid({
        detail: `rate_limit may be at most ${refusal.requestsPerMinute}, the account's requests per minute`,
        pointer: '/rate_limit',
      })
    case 'too-many-keys':
      return invalid({
        detail: `an account may have ${refusal.most} keys that are not revoked: revoke one first`,
        pointer: '',
      })
    case 'key-revoked':
      return invalid({
        detail: `the key was revoked at ${refusal.revokedAt.toISOString()}: issue another one`,
        parameter: 'id',
      })
    case 'over-grace':
      return invalid({ detail: `grace may be at most ${refusal.mostMs / 86_400_000}d`, pointer: '/grace' })
  }
}
