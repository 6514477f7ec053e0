import { UnavailableError } from '#libs/runtime/errors.js'
import type { Account, ApiKey } from '#libs/domain/account/account.js'
import type { Inbox } from '#libs/domain/inbox/inbox.js'
import type { Partition } from '#libs/ports/event-log/event-log.js'
import type { Address } from '#libs/domain/inbox/events.js'
import type { AccountId, InboxId, KeyId, ReplayId, WebhookId } from '#libs/domain/ids/typeid.js'
import type { Delivery } from '#libs/domain/webhook/delivery.js'
import type { Replay } from '#libs/domain/webhook/replay.js'
import type { Webhook } from '#libs/domain/webhook/webhook.js'
import type { DeliveryRow, InboxRow, MessageRow, HistoryEntry } from './views.js'
import type { DeliveryKey, MessageKey, ProjectionStore, ReplayKey } from './projection-store.js'

/**
 * The views are out of reach for now. Every method of the store and of the queries rejects with it, soon; a change may
 * have been made nevertheless.
 */
export class ReadModelUnavailableError extends UnavailableError {
  override readonly name: string = 'ReadModelUnavailableError'
}

/** The views of one engine: what writes them, and what reads them. */
export interface ReadModel {
  store: ProjectionStore
  queries: InboxQueries & DueInboxes
  accounts: AccountQueries
  deliveries: DeliveryQueries & DueDeliveries
  replays: ReplayQueries & ReplayLeases
  webhooks: WebhookQueries
}

/** How far a partition's views have advanced. */
export interface Progress extends Partition {
  /** The log that they were made of. */
  logId: string
  /** The next record to be applied. */
  position: number
  /** Before it the views are catching up: what they don't show may exist. */
  target: number
  /** When the target was set, in milliseconds since 1970 by the views' clock; later each time. */
  begunAtMs: number
}

/** Whether what a partition's views don't show may exist; null for views that were never begun. */
export function isCatchingUp(progress: Progress | null): boolean {
  return progress === null || progress.position < progress.target
}

export interface ListQuery<ListedId> {
  order: 'asc' | 'desc'
  /** Only what comes after this one, in the order asked for. */
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
  /** An inbox must have all of them. */
  labels: readonly (readonly [name: string, value: string])[]
  /** Inboxes past their expiry at this moment count as expired. */
  now: Date
}

export interface MessageRangeQuery extends OffsetQuery {
  inboxId: InboxId
}

export type HistoryQuery = MessageRangeQuery

/** What the HTTP API and the SMTP edge read. */
export interface InboxQueries {
  /** Null for a partition that no projector has begun. */
  progress(partition: Partition): Promise<Progress | null>
  inbox(id: InboxId): Promise<InboxRow | null>
  inboxIdAt(address: Address): Promise<InboxId | null>
  listInboxes(query: InboxListQuery): Promise<Inbox[]>
  message(key: MessageKey): Promise<MessageRow | null>
  /** Without deleted messages; fewer than the limit only if the range has no more. */
  listMessages(query: MessageRangeQuery): Promise<MessageRow[]>
  /** The sealed parsed mail. */
  body(key: MessageKey): Promise<Uint8Array | null>
  /** The sealed envelope and source. */
  raw(key: MessageKey): Promise<Uint8Array | null>
  /** Every event that changed the inbox, also after its end. */
  history(query: HistoryQuery): Promise<HistoryEntry[]>
}

/** A key that is not revoked. */
export type ActiveKey = Pick<ApiKey, 'id' | 'environment' | 'scopes'>

export interface AccountQueries {
  /** By the hex SHA-256 of any secret that the key has had. */
  keyByHash(secretHash: string): Promise<{ account: Account; key: ApiKey } | null>
  account(id: AccountId): Promise<Account | null>
  /** Ordered by id. */
  listAccounts(query: ListQuery<AccountId>): Promise<Account[]>
  key(id: KeyId): Promise<ApiKey | null>
  /** An account's keys, revoked ones too, ordered by id. */
  listKeys(accountId: AccountId, query: ListQuery<KeyId>): Promise<ApiKey[]>
  /** All of an account's keys that are not revoked, ordered by id: as many as an account may have. */
  activeKeys(accountId: AccountId): Promise<ActiveKey[]>
}

/** Whose webhooks: one inbox's own, or those for all inboxes of an environment. */
export type WebhookScope = { inboxId: InboxId } | { accountId: AccountId; environment: string }

/** Webhooks that exist; removed ones are not among them. */
export interface WebhookQueries {
  webhook(id: WebhookId): Promise<Webhook | null>
  /** Those of exactly that scope, disabled ones too, ordered by id. */
  listWebhooks(scope: WebhookScope, query: ListQuery<WebhookId>): Promise<Webhook[]>
  /**
   * The active ones of these inboxes, and of their environments, each once, in no order: in one round trip for some
   * hundred inboxes.
   */
  webhooksFor(inboxes: readonly WebhookedInbox[]): Promise<Webhook[]>
}

/** The fields of an inbox that decide which webhooks its events are delivered to. */
export interface WebhookedInbox {
  inboxId: InboxId
  accountId: AccountId
  environment: string
}

/** The scopes of all webhooks of some inboxes: each inbox, and each environment, once. */
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

export interface DueInboxes {
  /** Leases inboxes whose expiry has passed but whose end the views don't show, earliest first. */
  leaseDue(now: Date, limit: number): Promise<InboxId[]>
  /** How many inboxes the views show as active, those whose expiry passed a moment ago among them. */
  countActive(): Promise<number>
}

export interface DeliveryListQuery extends OffsetQuery {
  webhookId: WebhookId
  /** Null for every state. */
  state: Delivery['state'] | null
}

export interface DeliveryQueries {
  delivery(key: DeliveryKey): Promise<DeliveryRow | null>
  /** In the order of their requests; fewer than the limit only if the range has no more. */
  listDeliveries(query: DeliveryListQuery): Promise<DeliveryRow[]>
}

/** Due deliveries, shared by many processes: each is leased by one of them at a time. */
export interface DueDeliveries {
  /**
   * Webhooks with deliveries whose attempt may be due, in pages; a webhook may come twice. None of partitions that are
   * catching up: what is due there may have been delivered long ago.
   */
  dueWebhooks(now: Date): AsyncIterable<readonly WebhookId[]>
  /** Leases due deliveries of a webhook, earliest first; none of a partition that is catching up. */
  claimOf(webhookId: WebhookId, claim: { now: Date; leaseMs: number; limit: number }): Promise<DeliveryRow[]>
  /** The earliest due time of any attempt, past or future, leased or not; null if there is none. */
  earliestDue(): Promise<Date | null>
  /** Removes deliveries that are over and were requested before then; resolves with how many. */
  removeOld(before: Date): Promise<number>
}

export interface ReplayQueries {
  replay(key: ReplayKey): Promise<Replay | null>
  /** Ordered by id, which is the order of their requests. */
  listReplays(webhookId: WebhookId, query: ListQuery<ReplayId>): Promise<Replay[]>
}

/** Replays that have more deliveries to request: each is leased by one process at a time. */
export interface ReplayLeases {
  /** Leases the one that has waited longest; null if there is none. None of partitions that are catching up. */
  claimReplay(claim: { now: Date; leaseMs: number }): Promise<Replay | null>
  /** Ends a lease; the replay may be claimed again from that moment on. */
  releaseReplay(key: ReplayKey, at: Date): Promise<void>
  /** Removes replays requested before then, finished or not; resolves with how many. */
  removeOldReplays(before: Date): Promise<number>
}
