import type { ApiKey } from '#libs/account/account.js'
import { SCOPES } from '#libs/account/scope.js'
import { brand, type AccountId } from '#libs/typeid/typeid.js'
import type { ActiveKey } from '../queries.js'

/*
 * Members of the lists of keys, in the order of account and id. Nothing in them changes in a key's life, so that the
 * key itself says which member to remove.
 */

/** `keyId` may be any text that begins as one: an end of a range. */
export function keyListMember(accountId: AccountId, keyId: string): string {
  return `${accountId} ${keyId}`
}

export function writeActiveKey({ accountId, id, environment, scopes }: ApiKey): string {
  return [keyListMember(accountId, id), environment, scopes.join(',')].join(' ')
}

export function readActiveKey(member: string): ActiveKey {
  const [, id = '', environment = '', scopes = ''] = member.split(' ')
  const held = scopes.split(',')
  return { id: brand('key', id), environment, scopes: SCOPES.filter((scope) => held.includes(scope)) }
}
