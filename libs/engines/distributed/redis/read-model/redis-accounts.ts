import type { Account, ApiKey } from '#libs/domain/account/account.js'
import type { AccountId, KeyId, WebhookId } from '#libs/domain/ids/typeid.js'
import { REMOVED, type Webhook } from '#libs/domain/webhook/webhook.js'
import type { RedisClient } from '#libs/engines/distributed/redis/client/redis-client.js'
import {
  scopesOf,
  type AccountQueries,
  type ActiveKey,
  type ListQuery,
  type WebhookedInbox,
  type WebhookQueries,
  type WebhookScope,
} from '#libs/ports/read-model/queries.js'
import { type ViewKeys, keyListMember, readActiveKey, webhookListMember } from './keys.js'
import { pageOfIds, rowsOfIds, reach, runsOf } from './lists.js'
import { decodeAccount, decodeApiKey, decodeWebhook } from './rows.js'
import { ACTIVE_WEBHOOKS } from './scripts.js'

/** To one round trip, whose answer is as large as their webhooks are many. */
const SCOPES_AT_ONCE = 500

/** What account-events say: accounts, their keys and their webhooks. */
export class RedisAccounts implements AccountQueries, WebhookQueries {
  constructor(
    private readonly client: RedisClient,
    private readonly keys: ViewKeys,
  ) {}

  async keyByHash(secretHash: string): Promise<{ account: Account; key: ApiKey } | null> {
    const { client, keys } = this
    const keyId = await reach(() => client.hget(keys.keyHashes, secretHash))
    const key = keyId === null ? null : await this.key(keyId as KeyId)
    const account = key === null ? null : await this.account(key.accountId)
    return key === null || account === null ? null : { account, key }
  }

  async account(id: AccountId): Promise<Account | null> {
    const row = await reach(() => this.client.hgetBuffer(this.keys.accounts, id))
    return row === null ? null : decodeAccount(row)
  }

  async listAccounts(query: ListQuery<AccountId>): Promise<Account[]> {
    const { client, keys } = this
    const ids = await pageOfIds(client, keys.accountList, '', 'acc', query)
    return (await rowsOfIds(client, keys.accounts, ids)).map(decodeAccount)
  }

  async key(id: KeyId): Promise<ApiKey | null> {
    const row = await reach(() => this.client.hgetBuffer(this.keys.apiKeys, id))
    return row === null ? null : decodeApiKey(row)
  }

  async listKeys(accountId: AccountId, query: ListQuery<KeyId>): Promise<ApiKey[]> {
    const { client, keys } = this
    const ids = await pageOfIds(client, keys.keyList, keyListMember(accountId, ''), 'key', query)
    return (await rowsOfIds(client, keys.apiKeys, ids)).map(decodeApiKey)
  }

  async activeKeys(accountId: AccountId): Promise<ActiveKey[]> {
    const [from, to] = [keyListMember(accountId, 'key_'), keyListMember(accountId, 'key_~')]
    const members = await reach(() => this.client.zrange(this.keys.activeKeys, `(${from}`, `(${to}`, 'BYLEX'))
    return members.map(readActiveKey)
  }

  async webhook(id: WebhookId): Promise<Webhook | null> {
    const row = await reach(() => this.client.hgetBuffer(this.keys.webhooks, id))
    return row === null ? null : (decodeWebhooks([row])[0] ?? null)
  }

  async listWebhooks(scope: WebhookScope, query: ListQuery<WebhookId>): Promise<Webhook[]> {
    const { client, keys } = this
    const ids = await pageOfIds(client, keys.webhookList, webhookListMember(scope, ''), 'whk', query)
    return decodeWebhooks(await rowsOfIds(client, keys.webhooks, ids))
  }

  async webhooksFor(inboxes: readonly WebhookedInbox[]): Promise<Webhook[]> {
    const { client, keys } = this
    const found: Webhook[] = []
    for (const run of runsOf(scopesOf(inboxes), SCOPES_AT_ONCE)) {
      const owners = run.map((scope) => webhookListMember(scope, ''))
      const rows = await reach(() =>
        ACTIVE_WEBHOOKS.runForBytes(client, [keys.activeWebhooks, keys.webhooks], owners),
      )
      found.push(...decodeWebhooks(rows as Buffer[]))
    }
    return found
  }
}

/** Leaves out the marks of removed ones. */
function decodeWebhooks(rows: readonly Buffer[]): Webhook[] {
  return rows.map(decodeWebhook).filter((row) => row !== REMOVED)
}
