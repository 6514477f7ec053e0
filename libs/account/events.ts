import type { AccountId, KeyId } from '#libs/typeid/typeid.js'
import type { PlanName } from './plan.js'
import type { Scope } from './scope.js'

export type AccountEvent = AccountOpened | ApiKeyIssued

export interface AccountOpened {
  type: 'AccountOpened'
  accountId: AccountId
  name: string
  plan: PlanName
  openedAt: Date
}

export interface ApiKeyIssued {
  type: 'ApiKeyIssued'
  accountId: AccountId
  keyId: KeyId
  name: string
  environment: string
  scopes: readonly Scope[]
  /** Hex SHA-256 of the secret, which stands nowhere. */
  secretHash: string
  /** The secret's first characters, for people to tell keys apart. */
  prefix: string
  issuedAt: Date
}
