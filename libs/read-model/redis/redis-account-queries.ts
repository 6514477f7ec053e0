import type { Account, ApiKey } from '#libs/account/account.js'
import type { RedisClient } from '#libs/redis-client/redis-client.js'
import type { AccountId, KeyId } from '#libs/typeid/typeid.js'
import type { AccountQueries, ActiveKey, ListQuery } from '../queries.js'
import { keyListMember, readActiveKey } from './key-lists.js'
import type { ViewKeys } from './keys.js'
import { reach } from './reach.js'
import { decodeAccount, decodeApiKey } from './rows.js'

export class RedisAccountQueries implements AccountQueries {
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

  async hasAccounts(): Promise<boolean> {
    return (await reach(() => this.client.hlen(this.keys.accounts))) > 0
  }

  async account(id: AccountId): Promise<Account | null> {
    const row = await reach(() => this.client.hgetBuffer(this.keys.accounts, id))
    return row === null ? null : decodeAccount(row)
  }

  async listAccounts(query: ListQuery<AccountId>): Promise<Account[]> {
    const { accountList, accounts } = this.keys
    const ids = await this.page(accountList, '', { first: 'acc_', last: 'acc_~' }, query)
    return (await this.rows(accounts, ids)).map(decodeAccount)
  }

  async key(id: KeyId): Promise<ApiKey | null> {
    const row = await reach(() => this.client.hgetBuffer(this.keys.apiKeys, id))
    return row === null ? null : decodeApiKey(row)
  }

  async listKeys(accountId: AccountId, query: ListQuery<KeyId>): Promise<ApiKey[]> {
    const { keyList, apiKeys } = this.keys
    const ids = await this.page(
      keyList,
      keyListMember(accountId, ''),
      { first: 'key_', last: 'key_~' },
      query,
    )
    return (await this.rows(apiKeys, ids)).map(decodeApiKey)
  }

  async activeKeys(accountId: AccountId): Promise<ActiveKey[]> {
    const [from, to] = [keyListMember(accountId, 'key_'), keyListMember(accountId, 'key_~')]
    const members = await reach(() => this.client.zrange(this.keys.activeKeys, `(${from}`, `(${to}`, 'BYLEX'))
    return members.map(readActiveKey)
  }

  /** Ids of a list that stand behind a scope, in it from one end to the other. */
  private async page(
    list: string,
    scope: string,
    { first, last }: { first: string; last: string },
    { order, after, limit }: ListQuery<string>,
  ): Promise<string[]> {
    const [from, to] = order === 'asc' ? [after ?? first, last] : [after ?? last, first]
    const [start, stop] = [`(${scope}${from}`, `(${scope}${to}`]
    const members = await reach(() =>
      order === 'asc'
        ? this.client.zrange(list, start, stop, 'BYLEX', 'LIMIT', 0, limit)
        : this.client.zrange(list, start, stop, 'BYLEX', 'REV', 'LIMIT', 0, limit),
    )
    return members.map((member) => member.slice(scope.length))
  }

  private async rows(hash: string, ids: readonly string[]): Promise<Buffer[]> {
    if (ids.length === 0) return []
    const rows = await reach(() => this.client.hmgetBuffer(hash, ...ids))
    return rows.filter((row) => row !== null)
  }
}
