import type { ApiKey } from '#libs/domain/account/account.js'
import type {
  AccountId,
  DeliveryId,
  InboxId,
  MessageId,
  ReplayId,
  WebhookId,
} from '#libs/domain/ids/typeid.js'
import type { Inbox } from '#libs/domain/inbox/inbox.js'
import type { Delivery } from '#libs/domain/webhook/delivery.js'
import { accountViews, webhookViews } from './account-views.js'
import { deliveryViews, replayViews } from './delivery-views.js'
import { inboxViews } from './inbox-views.js'
import type { ViewStore } from './view-store.js'
import type { MailOwner } from './views.js'

/*
 * The queries of the views, for every engine. Each is written once, on the store. A row that is found is valid, although
 * possibly not the latest; what is not found may be missing because the views are catching up (`consistent-views.ts`).
 */

export type MailQueries = ReturnType<typeof inboxViews>
export type AccountQueries = ReturnType<typeof accountViews>
export type WebhookQueries = ReturnType<typeof webhookViews>
export type DeliveryQueries = ReturnType<typeof deliveryViews>
export type ReplayQueries = ReturnType<typeof replayViews>

/** The views of one engine, for writing and reading. */
export interface ReadModel {
  store: ViewStore
  queries: MailQueries
  accounts: AccountQueries
  webhooks: WebhookQueries
  deliveries: DeliveryQueries
  replays: ReplayQueries
}

export function readModel(store: ViewStore): ReadModel {
  return {
    store,
    queries: inboxViews(store),
    accounts: accountViews(store),
    webhooks: webhookViews(store),
    deliveries: deliveryViews(store),
    replays: replayViews(store),
  }
}

export interface MessageKey {
  inboxId: InboxId
  messageId: MessageId
}

export interface DeliveryKey {
  webhookId: WebhookId
  deliveryId: DeliveryId
}

export interface ReplayKey {
  webhookId: WebhookId
  replayId: ReplayId
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

/** A key that is not revoked. */
export type ActiveKey = Pick<ApiKey, 'id' | 'environment' | 'scopes'>

/** The fields of an inbox that decide which webhooks its events are delivered to. */
export interface WebhookedInbox {
  inboxId: InboxId
  accountId: AccountId
  environment: string
}

export interface DeliveryListQuery extends OffsetQuery {
  webhookId: WebhookId
  /** Null for every state. */
  state: Delivery['state'] | null
}

/** Leases up to `limit` things until `leaseMs` from now. Each is leased by one process at a time. */
export interface LeaseQuery {
  now: Date
  leaseMs: number
  limit: number
}
