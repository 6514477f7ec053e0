import type { Account, ApiKey } from '#libs/domain/account/account.js'
import type { AccountId, InboxId, KeyId, ReplayId, WebhookId } from '#libs/domain/ids/typeid.js'
import type { Address } from '#libs/domain/inbox/events.js'
import type { Inbox } from '#libs/domain/inbox/inbox.js'
import type { Delivery } from '#libs/domain/webhook/delivery.js'
import type { Replay } from '#libs/domain/webhook/replay.js'
import type { Webhook } from '#libs/domain/webhook/webhook.js'
import type { Partition } from '#libs/ports/event-log/event-log.js'
import { UnavailableError } from '#libs/runtime/errors.js'
import type { DeliveryKey, MessageKey, ProjectionStore, ReplayKey } from './projection-store.js'
import type {
  DeliveryRow,
  EnvironmentEnding,
  EnvironmentMessage,
  HistoryEntry,
  InboxRow,
  MailOwner,
  MessageRow,
} from './views.js'

/**
 * The views are unavailable. All methods of the store and of the queries reject with it, without a long wait. A change may
 * have been made nevertheless.
 */
export class ReadModelUnavailableError extends UnavailableError {
  override readonly name: string = 'ReadModelUnavailableError'
}

/** The views of one engine, for writing and reading. */
export interface ReadModel {
  store: ProjectionStore
  queries: MailQueries & DueInboxes
  accounts: AccountQueries
  deliveries: DeliveryQueries & DueDeliveries
  replays: ReplayQueries & ReplayLeases
  webhooks: WebhookQueries
}

/** How far a partition's views have advanced. */
export interface Progress extends Partition {
  /** The log that they were computed from. */
  logId: string
  /** The offset of the next record to apply. */
  position: number
  /** Until the views reach this offset they are catching up: something that they don't show may exist. */
  target: number
  /** When the target was set, in milliseconds since 1970 by the store's clock; later each time. */
  begunAtMs: number
}

/** Whether a partition's views are catching up. Pass null for views that were never begun. */
export function isCatchingUp(progress: Progress | null): boolean {
  return progress === null || progress.position < progress.target
}

export interface ListQuery<ListedId> {
  order: 'asc' | 'desc'
  /** Only rows after this one, in the given order. */
  after: ListedId | null
  limit: number
}

/** Offsets from `from` up to, not including, `to`. */
export interface OffsetQuery {
  order: 'asc' | 'desc'
  from: number
  to: number
  limit: number
}

/** Inboxes are listed by id, which is the order of their creation. */
export interface InboxListQuery extends ListQuery<InboxId> {
  accountId: AccountId
  environment: string
  state: Inbox['state']
  /** An inbox must have all of these labels. */
  labels: readonly (readonly [name: string, value: string])[]
  /** Inboxes past their expiry at this time count as expired. */
  now: Date
}

/**
 * The list of expired inboxes includes inboxes of any account that are past their expiry. If there are more than this,
 * it reads the account's own active inboxes instead.
 */
export const MAX_DUE_INBOXES = 1_000

/** Whether an inbox is of the query's environment and has its labels. */
export function matchesList(inbox: Inbox, { accountId, environment, labels }: InboxListQuery): boolean {
  if (inbox.accountId !== accountId || inbox.environment !== environment) return false
  return labels.every(([name, value]) => inbox.labels[name] === value)
}

export function comesBefore(one: InboxId, other: InboxId, order: ListQuery<InboxId>['order']): boolean {
  return order === 'asc' ? one < other : one > other
}

export interface MessageRangeQuery extends OffsetQuery {
  inboxId: InboxId
}

/** Offsets of one partition of inbox-events. */
export interface EnvironmentQuery extends OffsetQuery, MailOwner {
  partition: number
}

/** A label of an environment. `now` decides which of its inboxes have ended too long ago to count. */
export interface LabelQuery extends MailOwner {
  name: string
  value: string
  now: Date
}

/** The unprotected inboxes of a label that are active or have ended within a day, and the messages that they have received. */
export interface LabelTotals {
  inboxes: number
  received: number
}

/** Only the inboxes that have received from `from` up to, not including, `to` messages. */
export interface LabelCountQuery extends LabelQuery {
  from: number
  to: number
  limit: number
}

/** How many messages an inbox has received, with deleted ones. */
export interface InboxCount {
  inboxId: InboxId
  received: number
}

export interface ViewProgress {
  /** Null for a partition that no projector has begun. */
  progress(partition: Partition): Promise<Progress | null>
}

export interface InboxQueries {
  inbox(id: InboxId): Promise<InboxRow | null>
  inboxAt(address: Address): Promise<InboxRow | null>
  listInboxes(query: InboxListQuery): Promise<Inbox[]>
  /** All events that changed the inbox, also available after its end. */
  history(query: MessageRangeQuery): Promise<HistoryEntry[]>
}

export interface MessageQueries {
  message(key: MessageKey): Promise<MessageRow | null>
  /** Without deleted messages. Fewer than the limit only if the range has no more. */
  listMessages(query: MessageRangeQuery): Promise<MessageRow[]>
  /** The sealed parsed mail. */
  body(key: MessageKey): Promise<Uint8Array | null>
  /** The sealed envelope and source. */
  raw(key: MessageKey): Promise<Uint8Array | null>
}

/** Queries of all inboxes of an environment that are not protected. */
export interface EnvironmentQueries {
  /**
   * The messages of an environment's active inboxes in one partition, without deleted ones and those of protected
   * inboxes. Fewer than the limit only if the range has no more.
   */
  listEnvironmentMessages(query: EnvironmentQuery): Promise<EnvironmentMessage[]>
  /** The deletions of messages and the ends of inboxes, as in their history. Otherwise as `listEnvironmentMessages`. */
  listEnvironmentEndings(query: EnvironmentQuery): Promise<EnvironmentEnding[]>
  labelTotals(query: LabelQuery): Promise<LabelTotals>
  /** The inboxes that the totals count, those with the fewest messages first. */
  listLabelCounts(query: LabelCountQuery): Promise<InboxCount[]>
}

export type MailQueries = ViewProgress & InboxQueries & MessageQueries & EnvironmentQueries

/** A key that is not revoked. */
export type ActiveKey = Pick<ApiKey, 'id' | 'environment' | 'scopes'>

export interface AccountQueries {
  /** Finds a key by the hex SHA-256 of any secret that it has had. */
  keyByHash(secretHash: string): Promise<{ account: Account; key: ApiKey } | null>
  account(id: AccountId): Promise<Account | null>
  /** Ordered by id. */
  listAccounts(query: ListQuery<AccountId>): Promise<Account[]>
  key(id: KeyId): Promise<ApiKey | null>
  /** An account's keys, including revoked ones, ordered by id. */
  listKeys(accountId: AccountId, query: ListQuery<KeyId>): Promise<ApiKey[]>
  /** All of an account's keys that are not revoked, ordered by id. Their number is limited. */
  activeKeys(accountId: AccountId): Promise<ActiveKey[]>
}

/** The webhooks of one inbox, or those for all inboxes of an environment. */
export type WebhookScope = { inboxId: InboxId } | { accountId: AccountId; environment: string }

/** Queries of webhooks, without removed ones. */
export interface WebhookQueries {
  webhook(id: WebhookId): Promise<Webhook | null>
  /** The webhooks of exactly that scope, including disabled ones, ordered by id. */
  listWebhooks(scope: WebhookScope, query: ListQuery<WebhookId>): Promise<Webhook[]>
  /**
   * The active webhooks of these inboxes and of their environments, each once, in no particular order. One round trip for
   * a few hundred inboxes.
   */
  webhooksFor(inboxes: readonly WebhookedInbox[]): Promise<Webhook[]>
}

/** The fields of an inbox that decide which webhooks its events are delivered to. */
export interface WebhookedInbox {
  inboxId: InboxId
  accountId: AccountId
  environment: string
}

/** The scopes of all webhooks of some inboxes: each inbox and each environment once. */
export function scopesOf(inboxes: readonly WebhookedInbox[]): WebhookScope[] {
  const scopes = new Map<string, WebhookScope>()
  for (const { inboxId, accountId, environment } of inboxes) {
    scopes.set(inboxId, { inboxId })
    scopes.set(`${accountId} ${environment}`, { accountId, environment })
  }
  return [...scopes.values()]
}

/** The scope that a webhook is listed in. */
export function scopeOf({ inboxId, accountId, environment }: Webhook): WebhookScope {
  return inboxId === null ? { accountId, environment } : { inboxId }
}

/** Due inboxes. Each is leased by one process at a time. */
export interface DueInboxes {
  /** Leases inboxes that are past their expiry but still active in the views, earliest first. */
  leaseDue(claim: { now: Date; leaseMs: number; limit: number }): Promise<InboxId[]>
  /** How many inboxes are active in the views, including those that are just past their expiry. */
  countActive(): Promise<number>
}

/** The first inboxes of several lists, those with the fewest messages first. */
export function fewestFirst(lists: readonly InboxCount[][], limit: number): InboxCount[] {
  const compare = (one: InboxCount, other: InboxCount) =>
    one.received - other.received || (one.inboxId < other.inboxId ? -1 : 1)
  return lists.flat().toSorted(compare).slice(0, limit)
}

export interface DeliveryListQuery extends OffsetQuery {
  webhookId: WebhookId
  /** Null for every state. */
  state: Delivery['state'] | null
}

export interface DeliveryQueries {
  delivery(key: DeliveryKey): Promise<DeliveryRow | null>
  /** In the order of their requests. Fewer than the limit only if the range has no more. */
  listDeliveries(query: DeliveryListQuery): Promise<DeliveryRow[]>
}

/** Due deliveries. Each is leased by one process at a time. */
export interface DueDeliveries {
  /**
   * Webhooks that may have due deliveries, in pages; a webhook may occur twice. Without partitions that are catching up,
   * since their due deliveries may have been delivered long ago.
   */
  dueWebhooks(now: Date): AsyncIterable<readonly WebhookId[]>
  /** Leases due deliveries of a webhook, earliest first; none if its partition is catching up. */
  claimOf(webhookId: WebhookId, claim: { now: Date; leaseMs: number; limit: number }): Promise<DeliveryRow[]>
  /** The earliest due time of any attempt, past or future, leased or not; null if there is none. */
  earliestDue(): Promise<Date | null>
  /** Removes deliveries that have ended and were requested before then; resolves with their number. */
  removeOld(before: Date): Promise<number>
}

export interface ReplayQueries {
  replay(key: ReplayKey): Promise<Replay | null>
  /** Ordered by id, which is the order of their requests. */
  listReplays(webhookId: WebhookId, query: ListQuery<ReplayId>): Promise<Replay[]>
}

/** Replays that have more deliveries to request. Each is leased by one process at a time. */
export interface ReplayLeases {
  /** Leases the replay that has waited longest; null if there is none. Ignores partitions that are catching up. */
  claimReplay(claim: { now: Date; leaseMs: number }): Promise<Replay | null>
  /** Ends a lease. The replay may be claimed again from that time on. */
  releaseReplay(key: ReplayKey, at: Date): Promise<void>
  /** Removes replays that were requested before then, completed or not; resolves with their number. */
  removeOldReplays(before: Date): Promise<number>
}
