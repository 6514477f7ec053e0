import type { ApiKey } from '#libs/domain/account/account.js'
import { SCOPES } from '#libs/domain/account/scope.js'
import { brand, type AccountId } from '#libs/domain/ids/typeid.js'
import type { ReplayKey } from '#libs/ports/read-model/projection-store.js'
import type { ActiveKey, WebhookScope } from '#libs/ports/read-model/queries.js'

/*
 * Members of the lists of keys, webhooks and replays, in the order of what they belong to and of their ids. Nothing in them
 * changes in the life of one of these, which so says itself which member to remove.
 */

/** `keyId` may be any text that begins as one: an end of a range. */
export function keyListMember(accountId: AccountId, keyId: string): string {
  return `${accountId} ${keyId}`
}

/** `webhookId` may be any text that begins as one: an end of a range. Names of environments have no blanks. */
export function webhookListMember(scope: WebhookScope, webhookId: string): string {
  const owner = 'inboxId' in scope ? scope.inboxId : `${scope.accountId} ${scope.environment}`
  return `${owner} ${webhookId}`
}

export function writeActiveKey({ accountId, id, environment, scopes }: ApiKey): string {
  return [keyListMember(accountId, id), environment, scopes.join(',')].join(' ')
}

export function readActiveKey(member: string): ActiveKey {
  const [, id = '', environment = '', scopes = ''] = member.split(' ')
  const held = scopes.split(',')
  return { id: brand('key', id), environment, scopes: SCOPES.filter((scope) => held.includes(scope)) }
}

export function askingMember({ webhookId, replayId }: ReplayKey): string {
  return `${webhookId} ${replayId}`
}

export function readAskingMember(member: string): ReplayKey {
  const [webhookId = '', replayId = ''] = member.split(' ')
  return { webhookId: brand('whk', webhookId), replayId: brand('rpl', replayId) }
}
