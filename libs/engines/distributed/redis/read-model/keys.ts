import type { Partition } from '#libs/ports/event-log/event-log.js'
import { partitionOf } from '#libs/ports/event-log/topics.js'
import type { Address } from '#libs/domain/inbox/events.js'
import type { Inbox } from '#libs/domain/inbox/inbox.js'
import { type InboxId, type WebhookId, brand, type AccountId } from '#libs/domain/ids/typeid.js'
import { DELIVERY_STATES, type Delivery } from '#libs/domain/webhook/delivery.js'
import type { MessageKey, ReplayKey } from '#libs/ports/read-model/projection-store.js'
import type { ApiKey } from '#libs/domain/account/account.js'
import { SCOPES } from '#libs/domain/account/access.js'
import type { ActiveKey, WebhookScope } from '#libs/ports/read-model/queries.js'

/*
 * The keys of the views in Redis. Every key of a partition has the partition's hash tag (`{p0}:inboxes`,
 * `{p0}:messages:inb_…`), so that all of them are in one slot of a Cluster and one script can change them together. Only
 * the key of an address can be in any slot.
 */

export type ViewKeys = ReturnType<typeof viewKeys>

/** The names of all keys. `partitions` is the number of partitions of inbox-events, and of webhook-events. */
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
    accounts: ofAccounts('accounts'), // hash: account id → row
    apiKeys: ofAccounts('keys'), // hash: key id → row
    keyHashes: ofAccounts('key-hashes'), // hash: hash of a current or former secret → key id
    accountList: ofAccounts('account-list'), // sorted set: account id
    keyList: ofAccounts('key-list'), // sorted set: account id, then key id
    activeKeys: ofAccounts('active-keys'), // sorted set: the same for keys that are not revoked, with environment and scopes
    webhooks: ofAccounts('webhooks'), // hash: webhook id → row; a mark for a removed one
    webhookList: ofAccounts('webhook-list'), // sorted set: inbox id, or account id and environment, then webhook id
    activeWebhooks: ofAccounts('active-webhooks'), // sorted set: the same for active webhooks
  }
  const inboxKeys = {
    inboxes: byPartition('inboxes'), // hash: inbox id → row
    addresses: byPartition('addresses'), // hash: address → inbox id
    listing: byPartition('listing'), // sorted set: account, environment and state, then inbox id
    labels: byPartition('labels'), // sorted set: account, environment, state and label, then inbox id
    labelCounts: byPartition('label-counts'), // sorted set: account, environment, label, period, messages received, then inbox id
    labelTotals: byPartition('label-totals'), // hash: account, environment, label and period → inboxes; the same → messages received
    environmentMessages: byPartition('environment-messages'), // sorted set: account, environment, offset, then inbox, message and time
    environmentEndings: byPartition('environment-endings'), // sorted set: account, environment, offset, then inbox
    due: byPartition('due'), // sorted set: id of an active inbox, scored by its expiry
    leases: byPartition('leases'), // sorted set: id of a leased inbox, scored by the end of the lease
  }
  const webhookKeys = {
    webhookHealth: byPartition('webhook-health'), // hash: webhook id → row, for webhooks with deliveries or replays
    dueWebhooks: byPartition('due-webhooks'), // sorted set: webhook id, scored by the due time of its first delivery, or earlier
    pendingReplays: byPartition('asking-replays'), // sorted set: webhook id and replay id, scored by when it may be claimed
  }
  const keysOfOneWebhook = {
    deliveries: byWebhook('deliveries'), // hash: delivery id → row
    deliveryOrder: byWebhook('delivery-order'), // sorted set: delivery id, scored by its offset
    dueDeliveries: byWebhook('due'), // sorted set: delivery id, scored by its due time or the end of its lease
    replays: byWebhook('replays'), // hash: replay id → row
    replayList: byWebhook('replay-list'), // sorted set: replay id
  }
  /** Sorted set: id of a delivery in a state, scored by its offset. */
  const deliveriesIn = (id: WebhookId, state: Delivery['state']) => byWebhook(`delivery-${state}`)(id)

  return {
    ...accountKeys,
    ...inboxKeys,
    ...webhookKeys,
    ...keysOfOneWebhook,
    deliveriesIn,
    messages: byInbox('messages'), // hash: message id → row
    order: byInbox('order'), // sorted set: id of a message that is not deleted, scored by its offset
    history: byInbox('history'), // sorted set: an event of the inbox, scored by its offset
    body: byMessage('body'), // string: sealed parsed mail; expires
    raw: byMessage('raw'), // string: sealed envelope and source; expires
    address: (address: Address) => `${prefix}address:${address}`, // string: inbox id; valid only if the inbox has this address
    /** Hash: log, form, position, target, begun. If it is missing, the views are being emptied. */
    progress: ({ topic, partition }: Partition) =>
      topic === 'account-events' ? ofAccounts(`slot:${topic}`) : inPartition(partition, `slot:${topic}`),

    partitionOf: partitionOfId,
    everyPartition: Array.from({ length: partitions }, (_, partition) => partition),

    /** The keys that are removed together when a partition is emptied, after those of each inbox or webhook. */
    tables({ topic, partition }: Partition): string[] {
      if (topic === 'account-events') return Object.values(accountKeys)
      const keys = topic === 'webhook-events' ? webhookKeys : inboxKeys
      return Object.values(keys).map((key) => key(partition))
    },

    /** All keys of one webhook. */
    everyKeyOf: (id: WebhookId): string[] => [
      ...Object.values(keysOfOneWebhook).map((key) => key(id)),
      ...DELIVERY_STATES.map((state) => deliveriesIn(id, state)),
    ],
  }
}

type Scope = Pick<Inbox, 'accountId' | 'environment' | 'state'>

/** The prefix of the members of one list. As JSON, no scope is a prefix of another. */
export function listScope({ accountId, environment, state }: Scope): string {
  return JSON.stringify([accountId, environment, state])
}

export function labelScope({ accountId, environment, state }: Scope, name: string, value: string): string {
  return JSON.stringify([accountId, environment, state, name, value])
}

/*
 * Members of the lists of keys, webhooks and replays, ordered by owner and id. A member has only fields that never change,
 * so that the member to remove can be computed.
 */

/** `keyId` may be a prefix of an id, for the end of a range. */
export function keyListMember(accountId: AccountId, keyId: string): string {
  return `${accountId} ${keyId}`
}

/** `webhookId` may be a prefix of an id, for the end of a range. Names of environments have no spaces. */
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

export function pendingReplayMember({ webhookId, replayId }: ReplayKey): string {
  return `${webhookId} ${replayId}`
}

export function readPendingReplayMember(member: string): ReplayKey {
  const [webhookId = '', replayId = ''] = member.split(' ')
  return { webhookId: brand('whk', webhookId), replayId: brand('rpl', replayId) }
}
