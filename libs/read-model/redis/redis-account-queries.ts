import type { Account, ApiKey } from '#libs/account/account.js'
import type { RedisClient } from '#libs/redis-client/redis-client.js'
import type { AccountQueries } from '../queries.js'
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
    const key = keyId === null ? null : await reach(() => client.hgetBuffer(keys.apiKeys, keyId))
    if (key === null) return null
    const found = decodeApiKey(key)
    const account = await reach(() => client.hgetBuffer(keys.accounts, found.accountId))
    return account === null ? null : { account: decodeAccount(account), key: found }
  }

  async hasAccounts(): Promise<boolean> {
    return (await reach(() => this.client.hlen(this.keys.accounts))) > 0
  }
}
