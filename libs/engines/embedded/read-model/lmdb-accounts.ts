import type { Account, ApiKey } from '#libs/domain/account/account.js'
import type { AccountId, KeyId, WebhookId } from '#libs/domain/ids/typeid.js'
import { REMOVED, type Webhook } from '#libs/domain/webhook/webhook.js'
import {
  scopesOf,
  type AccountQueries,
  type ActiveKey,
  type ListQuery,
  type WebhookedInbox,
  type WebhookQueries,
  type WebhookScope,
} from '#libs/ports/read-model/queries.js'
import { ALL, idRange, type Tables } from './tables.js'

/** The queries of accounts, their keys and their webhooks (account-events). */
export class LmdbAccounts implements AccountQueries, WebhookQueries {
  constructor(private readonly tables: Tables) {}

  keyByHash(secretHash: string): Promise<{ account: Account; key: ApiKey } | null> {
    const keyId = this.tables.keyHashes.get(secretHash)
    const key = keyId === undefined ? undefined : this.tables.keys.get(keyId)
    const account = key === undefined ? undefined : this.tables.accounts.get(key.accountId)
    return Promise.resolve(key === undefined || account === undefined ? null : { account, key })
  }

  account(id: AccountId): Promise<Account | null> {
    return Promise.resolve(this.tables.accounts.get(id) ?? null)
  }

  listAccounts(query: ListQuery<AccountId>): Promise<Account[]> {
    const { start, end, ...options } = idRange([], 'acc', query)
    const found = this.tables.accounts.getRange({ start: start[0], end: end[0], ...options })
    return Promise.resolve([...found].map(({ value }) => value))
  }

  key(id: KeyId): Promise<ApiKey | null> {
    return Promise.resolve(this.tables.keys.get(id) ?? null)
  }

  listKeys(accountId: AccountId, query: ListQuery<KeyId>): Promise<ApiKey[]> {
    const listed = this.tables.accountKeys.getKeys(idRange([accountId], 'key', query))
    return Promise.resolve([...listed].flatMap(([, id]) => this.tables.keys.get(id) ?? []))
  }

  activeKeys(accountId: AccountId): Promise<ActiveKey[]> {
    const active = this.tables.activeKeys.getRange(idRange([accountId], 'key', ALL))
    return Promise.resolve([...active].map(({ value }) => value))
  }

  webhook(id: WebhookId): Promise<Webhook | null> {
    return Promise.resolve(this.presentWebhook(id))
  }

  listWebhooks(scope: WebhookScope, query: ListQuery<WebhookId>): Promise<Webhook[]> {
    return Promise.resolve(this.webhooksOf(scope, query))
  }

  webhooksFor(inboxes: readonly WebhookedInbox[]): Promise<Webhook[]> {
    const found = scopesOf(inboxes).flatMap((scope) => this.webhooksOf(scope, ALL))
    return Promise.resolve(found.filter(({ state }) => state === 'active'))
  }

  private webhooksOf(scope: WebhookScope, query: ListQuery<WebhookId>): Webhook[] {
    const { inboxWebhooks, environmentWebhooks } = this.tables
    const ids =
      'inboxId' in scope
        ? inboxWebhooks.getKeys(idRange([scope.inboxId], 'whk', query)).map(([, id]) => id)
        : environmentWebhooks
            .getKeys(idRange([scope.accountId, scope.environment], 'whk', query))
            .map(([, , id]) => id)
    return [...ids].flatMap((id) => this.presentWebhook(id) ?? [])
  }

  private presentWebhook(id: WebhookId): Webhook | null {
    const entry = this.tables.webhooks.get(id)
    return entry === undefined || entry === REMOVED ? null : entry
  }
}
