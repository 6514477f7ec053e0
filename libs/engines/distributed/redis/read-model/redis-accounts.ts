import type { Account, ApiKey } from '#libs/domain/account/account.js'
import type { AccountId, KeyId, WebhookId } from '#libs/domain/ids/typeid.js'
import { REMOVED, type Webhook } from '#libs/domain/webhook/webhook.js'
import type { RedisClient } from '#libs/engines/distributed/redis/client/redis-client.js'
import { Script } from '#libs/engines/distributed/redis/client/script.js'
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
import { pageOfIds, reach, runsOf } from './lists.js'
import type { Tables } from './rows.js'

/** To one round trip, whose answer is as large as their webhooks are many. */
const SCOPES_AT_ONCE = 500

/** What account-events say: accounts, their keys and their webhooks. */
export class RedisAccounts implements AccountQueries, WebhookQueries {
  constructor(
    private readonly client: RedisClient,
    private readonly keys: ViewKeys,
    private readonly tables: Tables,
  ) {}

  async keyByHash(secretHash: string): Promise<{ account: Account; key: ApiKey } | null> {
    const keyId = await reach(() => this.client.hget(this.keys.keyHashes, secretHash))
    const key = keyId === null ? null : await this.key(keyId as KeyId)
    const account = key === null ? null : await this.account(key.accountId)
    return key === null || account === null ? null : { account, key }
  }

  account(id: AccountId): Promise<Account | null> {
    return this.tables.accounts.get(id)
  }

  async listAccounts(query: ListQuery<AccountId>): Promise<Account[]> {
    const ids = await pageOfIds(this.client, this.keys.accountList, '', 'acc', query)
    return (await this.tables.accounts.getAll(ids)).filter((row) => row !== null)
  }

  key(id: KeyId): Promise<ApiKey | null> {
    return this.tables.apiKeys.get(id)
  }

  async listKeys(accountId: AccountId, query: ListQuery<KeyId>): Promise<ApiKey[]> {
    const ids = await pageOfIds(this.client, this.keys.keyList, keyListMember(accountId, ''), 'key', query)
    return (await this.tables.apiKeys.getAll(ids)).filter((row) => row !== null)
  }

  async activeKeys(accountId: AccountId): Promise<ActiveKey[]> {
    const [from, to] = [keyListMember(accountId, 'key_'), keyListMember(accountId, 'key_~')]
    const members = await reach(() => this.client.zrange(this.keys.activeKeys, `(${from}`, `(${to}`, 'BYLEX'))
    return members.map(readActiveKey)
  }

  async webhook(id: WebhookId): Promise<Webhook | null> {
    const row = await this.tables.webhooks.get(id)
    return row === REMOVED ? null : row
  }

  async listWebhooks(scope: WebhookScope, query: ListQuery<WebhookId>): Promise<Webhook[]> {
    const owner = webhookListMember(scope, '')
    const ids = await pageOfIds(this.client, this.keys.webhookList, owner, 'whk', query)
    return (await this.tables.webhooks.getAll(ids)).filter((row) => row !== null && row !== REMOVED)
  }

  async webhooksFor(inboxes: readonly WebhookedInbox[]): Promise<Webhook[]> {
    const { client, keys, tables } = this
    const found: Webhook[] = []
    for (const run of runsOf(scopesOf(inboxes), SCOPES_AT_ONCE)) {
      const owners = run.map((scope) => webhookListMember(scope, ''))
      const rows = await reach(() =>
        ACTIVE_WEBHOOKS.runForBytes(client, [keys.activeWebhooks, keys.webhooks], owners),
      )
      const webhooks = (rows as Buffer[]).map((bytes) => tables.webhooks.decode(bytes))
      found.push(...webhooks.filter((row) => row !== REMOVED))
    }
    return found
  }
}

/** The rows of all webhooks in a list (the first key) that stand behind the given beginnings of its members. */
const ACTIVE_WEBHOOKS = new Script(`
local rows = {}
for at = 1, #ARGV do
  local owner = ARGV[at]
  local members = redis.call('ZRANGE', KEYS[1], '(' .. owner .. 'whk_', '(' .. owner .. 'whk_~', 'BYLEX')
  for each = 1, #members do
    rows[#rows + 1] = redis.call('HGET', KEYS[2], string.sub(members[each], #owner + 1))
  end
end
return rows
`)
