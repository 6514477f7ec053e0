import type { AccountId, KeyId } from '#libs/typeid/typeid.js'
import type { RegistrationEvent } from '#libs/webhook/events.js'
import type { AccountLimits } from './plan.js'
import type { Scope } from './scope.js'

/** All that stands on account-events, registrations of webhooks included: one order holds among them. */
export type AccountEvent =
  AccountOpened | PlanChanged | ApiKeyIssued | ApiKeyRotated | ApiKeyRevoked | RegistrationEvent

export interface AccountOpened {
  type: 'AccountOpened'
  accountId: AccountId
  name: string
  plan: string
  limits: AccountLimits | null
  openedAt: Date
}

export interface PlanChanged {
  type: 'PlanChanged'
  accountId: AccountId
  plan: string
  limits: AccountLimits | null
  changedAt: Date
}

export interface ApiKeyIssued {
  type: 'ApiKeyIssued'
  accountId: AccountId
  keyId: KeyId
  name: string
  environment: string
  scopes: readonly Scope[]
  /** Most requests a minute; null for the account's limit. */
  rateLimit: number | null
  /** Hex SHA-256 of the secret, which stands nowhere. */
  secretHash: string
  /** The secret's first characters, for people to tell keys apart. */
  prefix: string
  issuedAt: Date
}

/** The key stays what it is and gets another secret. */
export interface ApiKeyRotated {
  type: 'ApiKeyRotated'
  accountId: AccountId
  keyId: KeyId
  /** Which rotation of the key this is, from 1 on: one that comes again, or that another was ahead of, changes nothing. */
  rotation: number
  /** Of the new secret. */
  secretHash: string
  prefix: string
  /** Until then the secret before it works too. */
  graceEndsAt: Date
  rotatedAt: Date
}

export interface ApiKeyRevoked {
  type: 'ApiKeyRevoked'
  accountId: AccountId
  keyId: KeyId
  /** The key that did it. */
  revokedBy: KeyId
  revokedAt: Date
}
