import type { Account, ApiKey } from '#libs/domain/account/account.js'
import type { AccountId, KeyId } from '#libs/domain/ids/typeid.js'
import type { AccountQueries, ActiveKey, ListQuery } from '#libs/ports/read-model/queries.js'
import type { AccountKeyKey, Tables } from './tables.js'

const [FIRST_ACCOUNT, BEHIND_ACCOUNTS] = ['acc_', 'acc_~'] as [AccountId, AccountId]
const [FIRST_KEY, BEHIND_KEYS] = ['key_', 'key_~'] as [KeyId, KeyId]

export class LmdbAccountQueries implements AccountQueries {
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

  listAccounts({ order, after, limit }: ListQuery<AccountId>): Promise<Account[]> {
    const [start, end] =
      order === 'asc' ? [after ?? FIRST_ACCOUNT, BEHIND_ACCOUNTS] : [after ?? BEHIND_ACCOUNTS, FIRST_ACCOUNT]
    const range = { start, end, limit, reverse: order === 'desc', exclusiveStart: true }
    return Promise.resolve([...this.tables.accounts.getRange(range)].map(({ value }) => value))
  }

  key(id: KeyId): Promise<ApiKey | null> {
    return Promise.resolve(this.tables.keys.get(id) ?? null)
  }

  listKeys(accountId: AccountId, { order, after, limit }: ListQuery<KeyId>): Promise<ApiKey[]> {
    const [from, to] = order === 'asc' ? [after ?? FIRST_KEY, BEHIND_KEYS] : [after ?? BEHIND_KEYS, FIRST_KEY]
    const [start, end]: [AccountKeyKey, AccountKeyKey] = [
      [accountId, from],
      [accountId, to],
    ]
    const range = { start, end, limit, reverse: order === 'desc', exclusiveStart: true }
    const found: ApiKey[] = []
    for (const [, id] of this.tables.accountKeys.getKeys(range)) {
      const key = this.tables.keys.get(id)
      if (key !== undefined) found.push(key)
    }
    return Promise.resolve(found)
  }

  activeKeys(accountId: AccountId): Promise<ActiveKey[]> {
    const [start, end]: [AccountKeyKey, AccountKeyKey] = [
      [accountId, FIRST_KEY],
      [accountId, BEHIND_KEYS],
    ]
    return Promise.resolve([...this.tables.activeKeys.getRange({ start, end })].map(({ value }) => value))
  }
}
