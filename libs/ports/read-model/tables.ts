import { hash } from 'node:crypto'
import {
  checkpointDueAt,
  type AddedLeaf,
  type AuditLog,
  type Checkpoint,
} from '#libs/domain/audit/audit-log.js'
import { TILE_HEIGHT, type Subtree } from '#libs/domain/audit/tree.js'
import { memberIdOf, type Account, type ApiKey } from '#libs/domain/account/account.js'
import type { Member } from '#libs/domain/account/member.js'
import { emailLookup } from '#libs/domain/account/personal-data.js'
import { keyDueAt } from '#libs/domain/account/key-expiry.js'
import {
  dayOf,
  kindOf,
  quotaScopesOf,
  scopeName,
  type MailQuota,
  type QuotaScope,
} from '#libs/domain/account/quota.js'
import { holdsName, type Domain } from '#libs/domain/account/domain.js'
import { brand, type AccountId, type InboxId, type LogId, type WebhookId } from '#libs/domain/ids/typeid.js'
import { isSentWithoutMail } from '#libs/domain/inbox/events.js'
import type { Inbox } from '#libs/domain/inbox/inbox.js'
import { hasMoreToRequest, type Replay } from '#libs/domain/webhook/replay.js'
import { REMOVED, type Webhook } from '#libs/domain/webhook/webhook.js'
import type { ActivityEntry } from './activity.js'
import { index, table, type Table } from './table.js'
import type { DeliveryRow, HistoryEntry, InboxRow, MailOwner, MessageRow, WebhookHealth } from './views.js'
import type { Entry } from './view-store.js'

/*
 * What the views store: every table, and its indexes. Declared once, for all engines. A change of this file, or of a type
 * of rows, changes the form of the views (`views-form.ts`), and they are computed again from the log.
 */

/** The list of an environment's inboxes in one state. */
type InboxList = Pick<Inbox, 'accountId' | 'environment' | 'state'>

export const listGroup = ({ accountId, environment, state }: InboxList) => [accountId, environment, state]

export const environmentGroup = ({ accountId, environment }: MailOwner) => [accountId, environment]

/**
 * Part of a digest of a group, as 22 characters. Labels are as long as clients choose, and a store repeats the group in each
 * of its entries.
 */
const digestOf = (group: readonly string[]) => hash('sha256', JSON.stringify(group), 'base64url').slice(0, 22)

export const labelGroup = (list: InboxList, name: string, value: string) => [
  digestOf([...listGroup(list), name, value]),
]

/** The groups of a label's counts, without the period. */
export const labelCountGroup = (owner: MailOwner, name: string, value: string) => [
  digestOf([...environmentGroup(owner), name, value]),
]

const inboxEvents = { topic: 'inbox-events' } as const
const accountEvents = { topic: 'account-events' } as const
const webhookEvents = { topic: 'webhook-events' } as const
const auditLeaves = { topic: 'audit-leaves' } as const

export const addresses = index<InboxRow>({
  ...{ name: 'address', ...inboxEvents, kind: 'lookup', sort: 'text' },
  entriesOf: ({ inbox }) => [{ sort: inbox.address, key: inbox.id }],
})

export const listing = index<InboxRow>({
  ...{ name: 'listing', ...inboxEvents },
  entriesOf: ({ inbox }) => [{ group: listGroup(inbox), key: inbox.id }],
})

export const labels = index<InboxRow>({
  ...{ name: 'labels', ...inboxEvents },
  entriesOf: ({ inbox }) =>
    Object.entries(inbox.labels).map(([name, value]) => ({
      group: labelGroup(inbox, name, value),
      key: inbox.id,
    })),
})

/**
 * The inboxes of a label by the number of messages that each has received, except protected ones, for each `countPeriod`.
 */
export const labelCounts = index<InboxRow>({
  ...{ name: 'label-counts', ...inboxEvents, sort: 'number', isTotalled: true },
  entriesOf: ({ inbox }) =>
    inbox.isProtected
      ? []
      : Object.entries(inbox.labels).map(([name, value]) => ({
          group: [...labelCountGroup(inbox, name, value), countPeriod(inbox)],
          sort: inbox.receivedCount,
          key: inbox.id,
        })),
})

/** Active inboxes, which are due when they expire. */
export const dueInboxes = index<InboxRow>({
  ...{ name: 'due', ...inboxEvents, kind: 'queue', sort: 'number' },
  entriesOf({ inbox }) {
    if (inbox.state !== 'active') return []
    const dueAtMs = inbox.expiresAt.getTime()
    return [{ sort: dueAtMs, key: inbox.id, dueAtMs }]
  },
})

/** What counts in a quota, on the day if it is a daily one. In days since 1970, UTC. */
export const useName = (quota: MailQuota, scope: QuotaScope, day: number) =>
  kindOf(quota).isDaily ? `${quota} ${scopeName(scope)} ${day}` : `${quota} ${scopeName(scope)}`

/** How much of each quota an inbox uses, and since which day. */
function usesOf(inbox: Inbox): [MailQuota, amount: number, day: number][] {
  const created = dayOf(inbox.createdAt)
  const { day = created, count = 0 } = inbox.receivedOn ?? {}
  const lasting: [MailQuota, number, number][] =
    inbox.state === 'active'
      ? [
          ['inboxes', 1, created],
          ['stored-bytes', inbox.storedBytes, created],
        ]
      : []
  return [...lasting, ['inboxes-per-day', 1, created], ['messages-per-day', count, day]]
}

/** What counts in the quotas of each account, environment and key. Past days stay, as the rows of ended inboxes do. */
export const accountUse = index<InboxRow>({
  ...{ name: 'account-use', ...inboxEvents, kind: 'totals', sort: 'number', isTotalled: true },
  entriesOf({ inbox }) {
    const { id: key, accountId } = inbox
    const scopes = quotaScopesOf(inbox)
    return usesOf(inbox)
      .filter(([, amount]) => amount > 0)
      .flatMap(([quota, sort, day]) =>
        scopes.map((scope) => ({ group: [accountId, useName(quota, scope, day)], sort, key })),
      )
  },
})

export const inboxes = table<InboxRow, InboxRow>({
  ...{ name: 'inboxes', ...inboxEvents },
  keyOf: ({ inbox }) => ({ owner: null, key: inbox.id }),
  rowOf: (row) => row,
  indexes: [addresses, listing, labels, labelCounts, accountUse, dueInboxes],
})

export interface MessageOf {
  inbox: Inbox
  row: MessageRow
}

/** The messages of an inbox in the order of the log, without deleted ones. */
export const messageOrder = index<MessageOf>({
  ...{ name: 'message-order', ...inboxEvents, sort: 'number', isOwned: true },
  entriesOf: ({ inbox, row: { message, offset } }) =>
    message.state === 'present' ? [{ group: [inbox.id], sort: offset, key: message.id }] : [],
})

/** The messages of an environment's inboxes in the order of the log, except those of protected inboxes. */
export const environmentMessages = index<MessageOf>({
  ...{ name: 'environment-messages', ...inboxEvents, sort: 'number' },
  entriesOf({ inbox, row: { message, offset } }) {
    if (message.state !== 'present' || inbox.isProtected) return []
    const value = `${inbox.id} ${message.receivedAt.getTime()}`
    return [{ group: environmentGroup(inbox), sort: offset, key: message.id, value }]
  },
})

export const messages = table<MessageOf, MessageRow>({
  ...{ name: 'messages', ...inboxEvents, ownedBy: inboxes.name, parts: ['body', 'raw'] },
  keyOf: ({ inbox, row }) => ({ owner: inbox.id, key: row.message.id }),
  rowOf: ({ row }) => row,
  hasContents: ({ row }) => row.message.state === 'present',
  indexes: [messageOrder, environmentMessages],
})

/** An entry of an inbox's history, which is kept after the inbox's end. */
export interface HistoryOf {
  inbox: Inbox
  entry: HistoryEntry
}

/** What every listed event has. */
type ListedEvent = Pick<HistoryEntry, 'offset' | 'id' | 'time'>

/** An event in the order of the log, with all that is listed of it. */
const eventEntry = (owner: string, { offset, id, time, ...fields }: ListedEvent) => ({
  ...{ group: [owner], sort: offset, key: id, value: JSON.stringify([time.getTime(), fields]) },
})

/** Reads what `eventEntry` has written: the event, and its other fields. */
function readEventEntry({ sort, key, value }: Entry): [ListedEvent, unknown] {
  const [timeMs, fields] = JSON.parse(value) as [number, unknown]
  return [{ offset: Number(sort), id: brand('evt', key), time: new Date(timeMs) }, fields]
}

export const historyOrder = index<HistoryOf>({
  ...{ name: 'history', ...inboxEvents, sort: 'number', isOwned: true },
  entriesOf: ({ inbox, entry }) => [eventEntry(inbox.id, entry)],
})

export function historyEntryOf(entry: Entry): HistoryEntry {
  const [event, fields] = readEventEntry(entry)
  return { ...event, ...(fields as Omit<HistoryEntry, keyof ListedEvent>) }
}

/**
 * Events that are sent without mail, such as deletions and the ends of inboxes, in the order of the log, except those of
 * protected inboxes.
 */
export const environmentEvents = index<HistoryOf>({
  ...{ name: 'environment-events', ...inboxEvents, sort: 'number' },
  entriesOf: ({ inbox, entry: { type, offset } }) =>
    inbox.isProtected || !isSentWithoutMail(type)
      ? []
      : [{ group: environmentGroup(inbox), sort: offset, key: inbox.id }],
})

/** What keys, members and tokens did with an account's inboxes, without messages, in the order of the log. */
export const inboxActivity = index<HistoryOf>({
  ...{ name: 'inbox-activity', ...inboxEvents, sort: 'number' },
  entriesOf: ({ inbox, entry: { keyId, messageId, offset } }) =>
    keyId === null || messageId !== null
      ? []
      : [{ group: [inbox.accountId], sort: offset, key: inbox.id, value: inbox.environment }],
})

export const history = table<HistoryOf, never>({
  ...{ name: 'history', ...inboxEvents, ownedBy: inboxes.name },
  keyOf: ({ inbox, entry }) => ({ owner: inbox.id, key: entry.id }),
  rowOf: () => null,
  indexes: [historyOrder, environmentEvents, inboxActivity],
})

/** An entry of the activity of an account, from account-events. */
export interface ActivityOf {
  accountId: AccountId
  entry: ActivityEntry
}

export const activityOrder = index<ActivityOf>({
  ...{ name: 'activity', ...accountEvents, sort: 'number' },
  entriesOf: ({ accountId, entry }) => [eventEntry(accountId, entry)],
})

export function activityEntryOf(entry: Entry): ActivityEntry {
  const [event, fields] = readEventEntry(entry)
  return { ...event, ...(fields as Omit<ActivityEntry, keyof ListedEvent>) }
}

export const activity = table<ActivityOf, never>({
  ...{ name: 'activity', ...accountEvents },
  keyOf: ({ entry }) => ({ owner: null, key: entry.id }),
  rowOf: () => null,
  indexes: [activityOrder],
})

export const accountList = index<Account>({
  ...{ name: 'account-list', ...accountEvents },
  entriesOf: ({ id }) => [{ key: id }],
})

/** Closed accounts that are not erased yet. */
export const dueAccounts = index<Account>({
  ...{ name: 'due-accounts', ...accountEvents, kind: 'queue', sort: 'number', needsCompleteViews: true },
  entriesOf({ id, closed, erasedAt }) {
    if (closed === null || erasedAt !== null) return []
    const dueAtMs = closed.at.getTime()
    return [{ sort: dueAtMs, key: id, dueAtMs }]
  },
})

export const accounts = table<Account, Account>({
  ...{ name: 'accounts', ...accountEvents },
  keyOf: ({ id }) => ({ owner: null, key: id }),
  rowOf: (account) => account,
  indexes: [accountList, dueAccounts],
})

/** The hashes of every secret that a key has had. */
export const keyHashes = index<ApiKey>({
  ...{ name: 'key-hashes', ...accountEvents, sort: 'text', isKept: true },
  entriesOf: ({ secretHash, id }) => [{ sort: secretHash, key: id }],
})

/** The keys of each account, and the personal keys of each member. */
export const keyList = index<ApiKey>({
  ...{ name: 'key-list', ...accountEvents },
  entriesOf: (key) =>
    [key.accountId, memberIdOf(key)].flatMap((holder) =>
      holder === null ? [] : [{ group: [holder], key: key.id }],
    ),
})

/** The keys that are neither revoked nor recorded as expired, with environment, scopes and who issued them. */
export const activeKeys = index<ApiKey>({
  ...{ name: 'active-keys', ...accountEvents },
  entriesOf: ({ accountId, id, environment, scopes, createdBy, revokedAt, expiredAt }) =>
    revokedAt === null && expiredAt === null
      ? [{ group: [accountId], key: id, value: `${environment} ${scopes.join(',')} ${createdBy ?? ''}` }]
      : [],
})

/** Keys with a notice, or that they have expired, to be recorded. */
export const dueKeys = index<ApiKey>({
  ...{ name: 'due-keys', ...accountEvents, kind: 'queue', sort: 'number', needsCompleteViews: true },
  entriesOf(key) {
    const dueAtMs = keyDueAt(key)?.getTime()
    return dueAtMs === undefined ? [] : [{ sort: dueAtMs, key: key.id, dueAtMs }]
  },
})

export const apiKeys = table<ApiKey, ApiKey>({
  ...{ name: 'keys', ...accountEvents },
  keyOf: ({ id }) => ({ owner: null, key: id }),
  rowOf: (key) => key,
  indexes: [keyHashes, keyList, activeKeys, dueKeys],
})

/** Members, and invitations that are not used yet, each with the lookup of its email address. */
export const memberList = index<Member>({
  ...{ name: 'member-list', ...accountEvents },
  entriesOf: ({ accountId, id, state, email }) =>
    state === 'active' || state === 'invited'
      ? [{ group: [accountId, state], key: id, value: emailLookup(email) }]
      : [],
})

/** The people of all accounts in one state, by the lookup of their email address and by the hash of their identity. */
export const people = index<Member>({
  ...{ name: 'people', ...accountEvents },
  entriesOf: ({ id, state, email, identity }) =>
    [emailLookup(email), identity?.hash].flatMap((name) =>
      name === undefined ? [] : [{ group: [state, name], key: id }],
    ),
})

export const members = table<Member, Member>({
  ...{ name: 'members', ...accountEvents },
  keyOf: ({ id }) => ({ owner: null, key: id }),
  rowOf: (member) => member,
  indexes: [memberList, people],
})

/** The webhooks of one inbox, or those for all inboxes of an environment. */
export type WebhookScope = { inboxId: InboxId } | MailOwner

export const webhookGroup = (scope: WebhookScope) =>
  'inboxId' in scope ? [scope.inboxId] : environmentGroup(scope)

/** A removed webhook keeps its row, as a mark, so that a repeated registration does not create it again. */
export interface WebhookOf {
  webhook: Webhook
  isRemoved: boolean
}

const scopeOf = ({ inboxId, ...environment }: Webhook): WebhookScope =>
  inboxId === null ? environment : { inboxId }

export const webhookList = index<WebhookOf>({
  ...{ name: 'webhook-list', ...accountEvents },
  entriesOf: ({ webhook, isRemoved }) =>
    isRemoved ? [] : [{ group: webhookGroup(scopeOf(webhook)), key: webhook.id }],
})

export const activeWebhooks = index<WebhookOf>({
  ...{ name: 'active-webhooks', ...accountEvents },
  entriesOf: ({ webhook, isRemoved }) =>
    isRemoved || webhook.state !== 'active'
      ? []
      : [{ group: webhookGroup(scopeOf(webhook)), key: webhook.id }],
})

/** The active webhooks that are notified of the quotas of their account. */
export const quotaWebhooks = index<WebhookOf>({
  ...{ name: 'quota-webhooks', ...accountEvents },
  entriesOf: ({ webhook: { id, accountId, state, events }, isRemoved }) =>
    isRemoved || state !== 'active' || !events.includes('quota.reached')
      ? []
      : [{ group: [accountId], key: id }],
})

/** The number of webhooks of environments that each account has. Those of inboxes end with their inboxes. */
export const accountWebhooks = index<WebhookOf>({
  ...{ name: 'account-webhooks', ...accountEvents, kind: 'totals', isTotalled: true },
  entriesOf: ({ webhook: { id, accountId, inboxId }, isRemoved }) =>
    isRemoved || inboxId !== null ? [] : [{ group: ['*', accountId], key: id }],
})

export const webhooks = table<WebhookOf, Webhook | typeof REMOVED>({
  ...{ name: 'webhooks', ...accountEvents },
  keyOf: ({ webhook }) => ({ owner: null, key: webhook.id }),
  rowOf: ({ webhook, isRemoved }) => (isRemoved ? REMOVED : webhook),
  indexes: [webhookList, activeWebhooks, quotaWebhooks, accountWebhooks],
})

/** A removed domain keeps its row, as a removed webhook does. */
export interface DomainOf {
  domain: Domain
  isRemoved: boolean
}

export const domainList = index<DomainOf>({
  ...{ name: 'domain-list', ...accountEvents },
  entriesOf: ({ domain, isRemoved }) =>
    isRemoved ? [] : [{ group: [domain.accountId], key: domain.id, value: domain.name }],
})

/** The domains that hold their names: one for each name. */
export const domainNames = index<DomainOf>({
  ...{ name: 'domain-names', ...accountEvents },
  entriesOf: ({ domain, isRemoved }) =>
    isRemoved || !holdsName(domain) ? [] : [{ group: [domain.name], key: domain.id }],
})

/** Domains whose DNS records are to be checked. */
export const dueDomains = index<DomainOf>({
  ...{ name: 'due-domains', ...accountEvents, kind: 'queue', sort: 'number', needsCompleteViews: true },
  entriesOf({ domain: { id, nextCheckAt }, isRemoved }) {
    if (isRemoved || nextCheckAt === null) return []
    const dueAtMs = nextCheckAt.getTime()
    return [{ sort: dueAtMs, key: id, dueAtMs }]
  },
})

export const domains = table<DomainOf, Domain | typeof REMOVED>({
  ...{ name: 'domains', ...accountEvents },
  keyOf: ({ domain }) => ({ owner: null, key: domain.id }),
  rowOf: ({ domain, isRemoved }) => (isRemoved ? REMOVED : domain),
  indexes: [domainList, domainNames, dueDomains],
})

/** Audit logs that have grown since their last checkpoint, or whose last one is to be cosigned. */
export const dueCheckpoints = index<AuditLog>({
  ...{ name: 'due-checkpoints', ...auditLeaves, kind: 'queue', sort: 'number', needsCompleteViews: true },
  entriesOf(log) {
    const dueAtMs = checkpointDueAt(log)?.getTime()
    return dueAtMs === undefined ? [] : [{ sort: dueAtMs, key: log.id, dueAtMs }]
  },
})

export const auditLogs = table<AuditLog, AuditLog>({
  ...{ name: 'audit-logs', ...auditLeaves },
  keyOf: ({ id }) => ({ owner: null, key: id }),
  rowOf: (log) => log,
  indexes: [dueCheckpoints],
})

export interface LeafOf extends AddedLeaf {
  logId: LogId
}

export const leafOrder = index<LeafOf>({
  ...{ name: 'leaf-order', ...auditLeaves, sort: 'number', isOwned: true },
  entriesOf: ({ logId, index: sort, leaf, text: value }) => [{ group: [logId], sort, key: leaf.id, value }],
})

/** The leaves of each event: one, unless its record was written twice. */
export const leafIds = index<LeafOf>({
  ...{ name: 'leaf-ids', ...auditLeaves, sort: 'number', isOwned: true },
  entriesOf: ({ logId, index: sort, leaf }) => [{ group: [logId, leaf.id], sort, key: String(sort) }],
})

export const leaves = table<LeafOf, never>({
  ...{ name: 'leaves', ...auditLeaves, ownedBy: auditLogs.name },
  keyOf: ({ logId, leaf }) => ({ owner: logId, key: leaf.id }),
  rowOf: () => null,
  indexes: [leafOrder, leafIds],
})

/** A full subtree of a log, whose hash is in a tile above the lowest level. */
export interface SubtreeOf extends Subtree {
  logId: LogId
  hash: string
}

export const subtreeOrder = index<SubtreeOf>({
  ...{ name: 'subtree-order', ...auditLeaves, sort: 'number', isOwned: true },
  entriesOf: ({ logId, height, index: sort, hash: value }) => [
    { group: [logId, String(height / TILE_HEIGHT)], sort, key: logId, value },
  ],
})

export const subtrees = table<SubtreeOf, never>({
  ...{ name: 'subtrees', ...auditLeaves, ownedBy: auditLogs.name },
  keyOf: ({ logId, height, index: at }) => ({ owner: logId, key: `${height}/${at}` }),
  rowOf: () => null,
  indexes: [subtreeOrder],
})

/** A checkpoint of a log. */
export interface CheckpointOf extends Pick<Checkpoint, 'size' | 'takenAt'> {
  logId: LogId
}

export const checkpointTimes = index<CheckpointOf>({
  ...{ name: 'checkpoint-times', ...auditLeaves, sort: 'number', isOwned: true },
  entriesOf: ({ logId, size, takenAt }) => [{ group: [logId], sort: takenAt.getTime(), key: String(size) }],
})

export const checkpoints = table<CheckpointOf, never>({
  ...{ name: 'checkpoints', ...auditLeaves, ownedBy: auditLogs.name },
  keyOf: ({ logId, size }) => ({ owner: logId, key: String(size) }),
  rowOf: () => null,
  indexes: [checkpointTimes],
})

/** Every webhook that has had a delivery or a replay. */
export const webhookHealth = table<WebhookHealth, WebhookHealth>({
  ...{ name: 'webhook-health', ...webhookEvents },
  keyOf: ({ webhookId }) => ({ owner: null, key: webhookId }),
  rowOf: (health) => health,
})

/** The deliveries of a webhook in the order of their requests. */
export const deliveryOrder = index<DeliveryRow>({
  ...{ name: 'delivery-order', ...webhookEvents, sort: 'number', isOwned: true },
  entriesOf: ({ delivery: { webhookId, id }, offset }) => [{ group: [webhookId], sort: offset, key: id }],
})

export const deliveryStates = index<DeliveryRow>({
  ...{ name: 'delivery-states', ...webhookEvents, sort: 'number', isOwned: true },
  entriesOf: ({ delivery: { webhookId, id, state }, offset }) => [
    { group: [webhookId, state], sort: offset, key: id },
  ],
})

export const dueDeliveries = index<DeliveryRow>({
  ...{ name: 'due-deliveries', ...webhookEvents, kind: 'queue', sort: 'number' },
  ...{ isOwned: true, needsCompleteViews: true },
  entriesOf({ delivery: { webhookId, id, dueAt } }) {
    if (dueAt === null) return []
    const dueAtMs = dueAt.getTime()
    return [{ group: [webhookId], sort: dueAtMs, key: id, dueAtMs }]
  },
})

export const deliveries = table<DeliveryRow, DeliveryRow>({
  ...{ name: 'deliveries', ...webhookEvents, ownedBy: webhookHealth.name },
  keyOf: ({ delivery }) => ({ owner: delivery.webhookId, key: delivery.id }),
  rowOf: (row) => row,
  indexes: [deliveryOrder, deliveryStates, dueDeliveries],
})

export const replayList = index<Replay>({
  ...{ name: 'replay-list', ...webhookEvents, isOwned: true },
  entriesOf: ({ webhookId, id }) => [{ group: [webhookId], key: id }],
})

/** Replays that have more deliveries to request. Those that have made the fewest steps come first. */
export const pendingReplays = index<Replay>({
  ...{ name: 'pending-replays', ...webhookEvents, kind: 'queue', sort: 'number', needsCompleteViews: true },
  entriesOf: (replay) =>
    hasMoreToRequest(replay) ? [{ sort: replay.steps, key: replay.id, value: replay.webhookId }] : [],
})

export const replays = table<Replay, Replay>({
  ...{ name: 'replays', ...webhookEvents, ownedBy: webhookHealth.name },
  keyOf: ({ webhookId, id }) => ({ owner: webhookId, key: id }),
  rowOf: (replay) => replay,
  indexes: [replayList, pendingReplays],
})

export function messageKey({ inboxId, messageId }: { inboxId: InboxId; messageId: string }) {
  return { owner: inboxId, key: messageId }
}

export function deliveryKey({ webhookId, deliveryId }: { webhookId: WebhookId; deliveryId: string }) {
  return { owner: webhookId, key: deliveryId }
}

export function replayKey({ webhookId, replayId }: { webhookId: WebhookId; replayId: string }) {
  return { owner: webhookId, key: replayId }
}

export const TABLES: readonly Pick<
  Table<never, unknown>,
  'name' | 'topic' | 'ownedBy' | 'parts' | 'indexes'
>[] = [
  inboxes,
  messages,
  history,
  activity,
  accounts,
  apiKeys,
  members,
  webhooks,
  domains,
  webhookHealth,
  deliveries,
  replays,
  auditLogs,
  leaves,
  subtrees,
  checkpoints,
]

const HOUR_MS = 3_600_000
/** Mail of an inbox that has ended counts for its labels for this time, and up to an hour longer. */
const COUNTED_HOURS = 24

const hourOf = (time: Date) => Math.floor(time.getTime() / HOUR_MS)

const writeHour = (hour: number) => String(hour).padStart(7, '0')

/** The period in which the messages of an inbox are counted: `active`, or the hour in which it ended, since 1970. */
function countPeriod(inbox: Inbox): string {
  return inbox.state === 'active' ? 'active' : writeHour(hourOf(inbox.endedAt))
}

/** The periods that count for a label. */
export function countedPeriods(now: Date): string[] {
  const current = hourOf(now)
  // Another process may already have ended an inbox in the next hour of its own clock.
  const hours = Array.from({ length: COUNTED_HOURS + 2 }, (_, ago) => writeHour(current + 1 - ago))
  return ['active', ...hours]
}
