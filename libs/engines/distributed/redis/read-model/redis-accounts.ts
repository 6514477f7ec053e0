import { brand } from '#libs/domain/ids/typeid.js'
import { REMOVED } from '#libs/domain/webhook/webhook.js'
import { reach } from '#libs/engines/distributed/redis/client/answer.js'
import type { RedisClient } from '#libs/engines/distributed/redis/client/redis-client.js'
import { Script } from '#libs/engines/distributed/redis/client/script.js'
import { scopesOf, type AccountQueries, type WebhookQueries } from '#libs/ports/read-model/queries.js'
import { chunksOf } from '#libs/runtime/chunks.js'
import { type ViewKeys, keyListMember, readActiveKey, webhookListMember } from './keys.js'
import { pageOfIds } from './lists.js'
import type { Tables } from './rows.js'

/** Scopes in one round trip. Its answer has the rows of all their webhooks. */
const MAX_SCOPES_AT_ONCE = 500

/** Queries of the views of account-events: accounts, their keys and their webhooks. */
export function accountQueries(
  client: RedisClient,
  keys: ViewKeys,
  { accounts, apiKeys, webhooks }: Tables,
): AccountQueries & WebhookQueries {
  return {
    async keyByHash(secretHash) {
      const keyId = await reach(() => client.hget(keys.keyHashes, secretHash))
      const key = keyId === null ? null : await apiKeys.get(brand('key', keyId))
      const account = key === null ? null : await accounts.get(key.accountId)
      return key === null || account === null ? null : { account, key }
    },

    account: (id) => accounts.get(id),

    async listAccounts(query) {
      const ids = await pageOfIds(client, keys.accountList, '', 'acc', query)
      return (await accounts.getAll(ids)).filter((row) => row !== null)
    },

    key: (id) => apiKeys.get(id),

    async listKeys(accountId, query) {
      const ids = await pageOfIds(client, keys.keyList, keyListMember(accountId, ''), 'key', query)
      return (await apiKeys.getAll(ids)).filter((row) => row !== null)
    },

    async activeKeys(accountId) {
      const [from, to] = [keyListMember(accountId, 'key_'), keyListMember(accountId, 'key_~')]
      const members = await reach(() => client.zrange(keys.activeKeys, `(${from}`, `(${to}`, 'BYLEX'))
      return members.map(readActiveKey)
    },

    async webhook(id) {
      const row = await webhooks.get(id)
      return row === REMOVED ? null : row
    },

    async listWebhooks(scope, query) {
      const ids = await pageOfIds(client, keys.webhookList, webhookListMember(scope, ''), 'whk', query)
      return (await webhooks.getAll(ids)).filter((row) => row !== null && row !== REMOVED)
    },

    async webhooksFor(inboxes) {
      const lists = [keys.activeWebhooks, keys.webhooks]
      const found: Buffer[] = []
      for (const scopes of chunksOf(scopesOf(inboxes), MAX_SCOPES_AT_ONCE)) {
        const owners = scopes.map((scope) => webhookListMember(scope, ''))
        found.push(...((await reach(() => ACTIVE_WEBHOOKS.runForBytes(client, lists, owners))) as Buffer[]))
      }
      return found.map((bytes) => webhooks.decode(bytes)).filter((row) => row !== REMOVED)
    },
  }
}

/** Returns the rows of all webhooks whose members start with one of the arguments. Keys: list, rows. */
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
