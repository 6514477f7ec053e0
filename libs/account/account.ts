import type { AccountId, KeyId } from '#libs/typeid/typeid.js'
import type { AccountEvent } from './events.js'
import type { PlanName } from './plan.js'
import type { Scope } from './scope.js'

export interface Account {
  id: AccountId
  name: string
  plan: PlanName
  openedAt: Date
}

export interface ApiKey {
  id: KeyId
  accountId: AccountId
  name: string
  environment: string
  scopes: readonly Scope[]
  secretHash: string
  prefix: string
  issuedAt: Date
}

/** The part of the whole that one event concerns. */
export interface AccountSlice {
  account: Account | null
  key: ApiKey | null
}

/** Total and idempotent: an event that comes again, or out of place, gives back the slice it was given. */
export function evolve(slice: AccountSlice, event: AccountEvent): AccountSlice {
  const { account, key } = slice
  switch (event.type) {
    case 'AccountOpened': {
      if (account !== null) return slice
      const { accountId: id, name, plan, openedAt } = event
      return { account: { id, name, plan, openedAt }, key }
    }
    case 'ApiKeyIssued': {
      if (account === null || key !== null) return slice
      const { type: _type, keyId, ...facts } = event
      return { account, key: { ...facts, id: keyId } }
    }
  }
}
