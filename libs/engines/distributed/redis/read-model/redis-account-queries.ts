import type { Account, ApiKey } from '#libs/domain/account/account.js'
import type { RedisClient } from '#libs/engines/distributed/redis/client/redis-client.js'
import type { AccountId, KeyId } from '#libs/domain/ids/typeid.js'
import type { AccountQueries, ActiveKey, ListQuery } from '#libs/ports/read-model/queries.js'
import { pageOfIds, rowsOfIds } from './id-pages.js'
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
}
