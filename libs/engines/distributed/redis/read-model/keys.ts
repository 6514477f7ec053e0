import type { Partition } from '#libs/ports/event-log/event-log.js'
import { partitionOf } from '#libs/ports/event-log/topics.js'
import type { Address } from '#libs/domain/inbox/address.js'
import type { Inbox } from '#libs/domain/inbox/inbox.js'
import { type InboxId, type WebhookId, brand, type AccountId } from '#libs/domain/ids/typeid.js'
import { DELIVERY_STATES, type Delivery } from '#libs/domain/webhook/delivery.js'
import type { MessageKey, ReplayKey } from '#libs/ports/read-model/projection-store.js'
import type { ApiKey } from '#libs/domain/account/account.js'
import { SCOPES } from '#libs/domain/account/api-key.js'
import type { ActiveKey, WebhookScope } from '#libs/ports/read-model/queries.js'

/*
 * The views in Redis. Every key of a partition carries its hash tag, so that all of them lie in one slot of a
 * Cluster and one script may change them together; only an address lies in a slot of its own.
 *
 * | key                              | type       | holds                                                     |
 * | -------------------------------- | ---------- | --------------------------------------------------------- |
 * | {p<n>}:slot:inbox-events         | hash       | log, form, position, target; no position: being emptied    |
 * | {p<n>}:inboxes                   | hash       | inbox id → row                                            |
 * | {p<n>}:addresses                 | hash       | address → inbox id                                        |
 * | {p<n>}:listing                   | sorted set | scope of account, environment and state, then inbox id    |
 * | {p<n>}:labels                    | sorted set | the same with a label in the scope                        |
 * | {p<n>}:due                       | sorted set | id of an active inbox, by its expiry                      |
 * | {p<n>}:leases                    | sorted set | inbox id of a due one that is leased, by the lease's end  |
 * | {p<n>}:messages:<inbox id>       | hash       | message id → row                                          |
 * | {p<n>}:order:<inbox id>          | sorted set | id of a message that is there, by its offset              |
 * | {p<n>}:body:<message id>         | string     | sealed parsed mail; expires                               |
 * | {p<n>}:raw:<message id>          | string     | sealed envelope and source; expires                       |
 * | {p<n>}:history:<inbox id>        | sorted set | an event of the inbox, by its offset                      |
 * | {p<n>}:slot:webhook-events       | hash       | as above                                                  |
 * | {p<n>}:webhook-health            | hash       | webhook id → row, of each with a delivery or a replay      |
 * | {p<n>}:due-webhooks              | sorted set | webhook id, by when something of it is due, or earlier    |
 * | {p<n>}:deliveries:<webhook id>   | hash       | delivery id → row                                         |
 * | {p<n>}:delivery-order:<webhook>  | sorted set | delivery id, by its offset                                |
 * | {p<n>}:delivery-<state>:<webhook>| sorted set | the same of those in a state                              |
 * | {p<n>}:due:<webhook id>          | sorted set | delivery id, by its due time, leased ones by the lease's end |
 * | {p<n>}:replays:<webhook id>      | hash       | replay id → row                                           |
 * | {p<n>}:replay-list:<webhook id>  | sorted set | replay id                                                 |
 * | {p<n>}:asking-replays            | sorted set | webhook id and replay id, by when it may be claimed        |
 * | {accounts}:slot:account-events   | hash       | as above                                                  |
 * | {accounts}:accounts              | hash       | account id → row                                          |
 * | {accounts}:keys                  | hash       | key id → row                                              |
 * | {accounts}:key-hashes            | hash       | hash of a secret, present or former → key id              |
 * | {accounts}:account-list          | sorted set | account id                                                |
 * | {accounts}:key-list              | sorted set | account id, then key id                                   |
 * | {accounts}:active-keys           | sorted set | the same of a key not revoked, with environment, scopes   |
 * | {accounts}:webhooks              | hash       | webhook id → row; the mark of a removed one               |
 * | {accounts}:webhook-list          | sorted set | inbox id, or account id and environment, then webhook id  |
 * | {accounts}:active-webhooks       | sorted set | the same of an active one                                 |
 * | address:<address>                | string     | inbox id; true if the inbox agrees                     |
 */

export type ViewKeys = ReturnType<typeof viewKeys>

/** The names of all keys. `partitions` is the number of those of inbox-events, and of webhook-events. */
export function viewKeys(prefix: string, partitions: number) {
  const ofAccounts = (name: string) => `${prefix}{accounts}:${name}`
  const inPartition = (partition: number, name: string) => `${prefix}{p${partition}}:${name}`
  const byPartition = (name: string) => (partition: number) => inPartition(partition, name)
  const partitionOfId = (id: InboxId | WebhookId) => partitionOf(id, partitions)
  const byInbox = (name: string) => (id: InboxId) => inPartition(partitionOfId(id), `${name}:${id}`)
  const byWebhook = (name: string) => (id: WebhookId) => inPartition(partitionOfId(id), `${name}:${id}`)
  const byMessage = (name: string) => (message: MessageKey) =>
    inPartition(partitionOfId(message.inboxId), `${name}:${message.messageId}`)

  const accountKeys = {
    accounts: ofAccounts('accounts'),
    apiKeys: ofAccounts('keys'),
    keyHashes: ofAccounts('key-hashes'),
    accountList: ofAccounts('account-list'),
    keyList: ofAccounts('key-list'),
    activeKeys: ofAccounts('active-keys'),
    webhooks: ofAccounts('webhooks'),
    webhookList: ofAccounts('webhook-list'),
    activeWebhooks: ofAccounts('active-webhooks'),
  }
  const inboxKeys = {
    inboxes: byPartition('inboxes'),
    addresses: byPartition('addresses'),
    listing: byPartition('listing'),
    labels: byPartition('labels'),
    due: byPartition('due'),
    leases: byPartition('leases'),
  }
  const webhookKeys = {
    webhookHealth: byPartition('webhook-health'),
    dueWebhooks: byPartition('due-webhooks'),
    askingReplays: byPartition('asking-replays'),
  }
  const keysOfOneWebhook = {
    deliveries: byWebhook('deliveries'),
    deliveryOrder: byWebhook('delivery-order'),
    dueDeliveries: byWebhook('due'),
    replays: byWebhook('replays'),
    replayList: byWebhook('replay-list'),
  }
  const deliveriesIn = (id: WebhookId, state: Delivery['state']) => byWebhook(`delivery-${state}`)(id)

  return {
    ...accountKeys,
    ...inboxKeys,
    ...webhookKeys,
    ...keysOfOneWebhook,
    deliveriesIn,
    messages: byInbox('messages'),
    order: byInbox('order'),
    history: byInbox('history'),
    body: byMessage('body'),
    raw: byMessage('raw'),
    address: (address: Address) => `${prefix}address:${address}`,
    slot: ({ topic, partition }: Partition) =>
      topic === 'account-events' ? ofAccounts(`slot:${topic}`) : inPartition(partition, `slot:${topic}`),

    partitionOf: partitionOfId,
    everyPartition: Array.from({ length: partitions }, (_, partition) => partition),

    /** The keys that are removed at once when a partition is emptied, after those of its single inboxes or webhooks. */
    tables({ topic, partition }: Partition): string[] {
      if (topic === 'account-events') return Object.values(accountKeys)
      const keys = topic === 'webhook-events' ? webhookKeys : inboxKeys
      return Object.values(keys).map((key) => key(partition))
    },

    /** All keys of a webhook's own. */
    everyKeyOf: (id: WebhookId): string[] => [
      ...Object.values(keysOfOneWebhook).map((key) => key(id)),
      ...DELIVERY_STATES.map((state) => deliveriesIn(id, state)),
    ],
  }
}

type Scope = Pick<Inbox, 'accountId' | 'environment' | 'state'>

/** What comes before the ids of one list. As JSON no scope begins like another. */
export function listScope({ accountId, environment, state }: Scope): string {
  return JSON.stringify([accountId, environment, state])
}

export function labelScope({ accountId, environment, state }: Scope, name: string, value: string): string {
  return JSON.stringify([accountId, environment, state, name, value])
}

/*
 * Members of the lists of keys, webhooks and replays, ordered by owner and id. Nothing in a member changes as long as
 * what it names exists, so the member to remove can be computed from it.
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
