import { MAX_RETENTION } from '#libs/domain/account/access.js'
import { evolve as evolveAccount, type AccountSlice } from '#libs/domain/account/account.js'
import type { Domain } from '#libs/domain/account/domain.js'
import type { AccountEvent } from '#libs/domain/account/events.js'
import { evolve as evolveAuditLog } from '#libs/domain/audit/audit-log.js'
import type { AuditEvent } from '#libs/domain/audit/events.js'
import type {
  AccountId,
  DomainId,
  InboxId,
  KeyId,
  MemberId,
  MessageId,
  WebhookId,
} from '#libs/domain/ids/typeid.js'
import type { InboxEvent, MessageReceived } from '#libs/domain/inbox/events.js'
import { evolve, type ActiveInbox } from '#libs/domain/inbox/inbox.js'
import { evolve as evolveDelivery, type Delivery } from '#libs/domain/webhook/delivery.js'
import type { DeliveryEvent, WebhookEvent } from '#libs/domain/webhook/events.js'
import { countDelivery, evolve as evolveReplay } from '#libs/domain/webhook/replay.js'
import { present, REMOVED } from '#libs/domain/webhook/webhook.js'
import { activityOf } from './activity.js'
import { keyRange, rowOf } from './lists.js'
import { put, removeOwned, type Table } from './table.js'
import * as tables from './tables.js'
import type { Change, RowKey, TableOf, ViewStore } from './view-store.js'
import {
  historyEntry,
  type HistoryEntry,
  type InboxRow,
  type MessageRow,
  type LoggedEvent,
  type WebhookHealth,
} from './views.js'

/*
 * The projections: for each topic, from events, and the rows that they concern, to the changes of the views.
 */

/** The rows of the views that a run of inbox events concerns, before that run. */
type InboxRows = Awaited<ReturnType<typeof inboxRowsBefore>>

export interface InboxProjection {
  changes: Change[]
  /**
   * Messages that the events add and don't delete again. Their content must be written together with the changes, and
   * kept until `expiresAt`, the latest time at which their inbox can end: its expiry may still be moved there.
   */
  received: { event: MessageReceived; expiresAt: Date }[]
}

export async function inboxRowsBefore(
  store: Pick<ViewStore, 'rows'>,
  events: readonly LoggedEvent<InboxEvent>[],
) {
  const inboxKeys = events.map(({ event }) => ({ owner: null, key: event.inboxId }))
  const messageKeys = events.flatMap(({ event }) => ('messageId' in event ? [tables.messageKey(event)] : []))
  const [inboxes, messages] = await Promise.all([
    rowsById(store, tables.inboxes, inboxKeys, ({ inbox }) => inbox.id),
    rowsById(store, tables.messages, messageKeys, ({ message }) => message.id),
  ])
  return { inboxes, messages }
}

/** Reads each row once. Keys without a row are missing from the result. */
async function rowsById<Id, Row>(
  store: Pick<ViewStore, 'rows'>,
  table: TableOf<Row>,
  keys: readonly RowKey[],
  idOf: (row: Row) => Id,
): Promise<ReadonlyMap<Id, Row>> {
  const distinct = new Map(keys.map((each) => [each.key, each]))
  const rows = distinct.size === 0 ? [] : await store.rows(table, [...distinct.values()])
  return new Map(rows.flatMap((row) => (row === null ? [] : [[idOf(row), row]])))
}

/** One change for each row that is not the same as before. */
function putChanged<Id, Row>(
  table: Table<Row, unknown>,
  before: ReadonlyMap<Id, Row>,
  after: ReadonlyMap<Id, Row>,
): Change[] {
  return [...after].flatMap(([id, row]) => {
    const previous = before.get(id) ?? null
    return row === previous ? [] : [put(table, row, previous)]
  })
}

/**
 * The changes that a run of events of one partition makes in the views. An event that changes nothing, because it is
 * repeated or too late, is not added to the history either.
 */
export function projectInboxEvents(
  before: InboxRows,
  events: readonly LoggedEvent<InboxEvent>[],
): InboxProjection {
  const inboxes = new Map<InboxId, InboxRow>()
  const messages = new Map<MessageId, { inboxId: InboxId; row: MessageRow }>()
  const received = new Map<MessageId, MessageReceived>()
  const history: { inboxId: InboxId; entry: HistoryEntry }[] = []

  for (const logged of events) {
    const { offset, event } = logged
    const { inboxId } = event
    const inboxRow = inboxes.get(inboxId) ?? before.inboxes.get(inboxId)
    const messageRow =
      'messageId' in event
        ? (messages.get(event.messageId)?.row ?? before.messages.get(event.messageId))
        : undefined
    const slice = { inbox: inboxRow?.inbox ?? null, message: messageRow?.message ?? null }
    const next = evolve(slice, event)
    if (next === slice || next.inbox === null) continue
    inboxes.set(inboxId, { inbox: next.inbox, endOffset: offset + 1 })
    history.push({ inboxId, entry: historyEntry(logged, slice.inbox) })
    if (next.message !== null) {
      const row = { message: next.message, offset: messageRow?.offset ?? offset }
      messages.set(next.message.id, { inboxId, row })
    }
    if (event.type === 'MessageReceived') received.set(event.messageId, event)
    if (event.type === 'MessageDeleted') received.delete(event.messageId)
  }

  const changes = putChanged(tables.inboxes, before.inboxes, inboxes)
  for (const { inbox } of inboxes.values()) {
    if (inbox.state === 'active') continue
    changes.push(removeOwned(tables.messages, inbox.id, (row) => ({ inbox, row })))
  }
  for (const [messageId, { inboxId, row }] of messages) {
    const inbox = activeInbox(inboxId)
    const previous = before.messages.get(messageId)
    if (inbox === null) continue
    changes.push(
      put(tables.messages, { inbox, row }, previous === undefined ? null : { inbox, row: previous }),
    )
  }
  for (const { inboxId, entry } of history) {
    const inbox = inboxes.get(inboxId)?.inbox
    if (inbox !== undefined) changes.push(put(tables.history, { inbox, entry }, null))
  }
  const kept = [...received.values()].flatMap((event) => {
    const inbox = activeInbox(event.inboxId)
    return inbox === null ? [] : [{ event, expiresAt: latestExpiry(inbox) }]
  })
  return { changes, received: kept }

  function activeInbox(inboxId: InboxId): ActiveInbox | null {
    const inbox = inboxes.get(inboxId)?.inbox
    return inbox?.state === 'active' ? inbox : null
  }
}

function latestExpiry({ createdAt }: ActiveInbox): Date {
  return new Date(createdAt.getTime() + MAX_RETENTION.ms)
}

type WebhookRows = Awaited<ReturnType<typeof webhookRowsBefore>>

type LoggedWebhookEvent = Pick<LoggedEvent<WebhookEvent>, 'offset' | 'event'>

export async function webhookRowsBefore(
  store: Pick<ViewStore, 'rows'>,
  events: readonly LoggedWebhookEvent[],
) {
  const healthKeys = events.map(({ event }) => ({ owner: null, key: event.webhookId }))
  const deliveryKeys = events.flatMap(({ event }) =>
    'deliveryId' in event ? [tables.deliveryKey(event)] : [],
  )
  const [deliveries, health] = await Promise.all([
    rowsById(store, tables.deliveries, deliveryKeys, ({ delivery }) => delivery.id),
    rowsById(store, tables.webhookHealth, healthKeys, ({ webhookId }) => webhookId),
  ])
  // The replays that the events are about, and those that the deliveries belong to.
  const about = [
    ...events.map(({ event }) => event),
    ...[...deliveries.values()].map(({ delivery }) => delivery),
  ]
  const replayKeys = about.flatMap((each) => {
    const replayId = 'replayId' in each ? each.replayId : null
    return replayId === null ? [] : [tables.replayKey({ webhookId: each.webhookId, replayId })]
  })
  return { deliveries, health, replays: await rowsById(store, tables.replays, replayKeys, ({ id }) => id) }
}

/** The changes that a run of events of one partition makes in the views: one for each row, with its last state. */
export function projectWebhookEvents(before: WebhookRows, events: readonly LoggedWebhookEvent[]): Change[] {
  const deliveries = new Map(before.deliveries)
  const replays = new Map(before.replays)
  const health = new Map(before.health)

  for (const { offset, event } of events) {
    const { webhookId } = event
    const known = health.get(webhookId) ?? { webhookId, failingSince: null }
    if ('deliveryId' in event) {
      const row = deliveries.get(event.deliveryId)
      const previous = row?.delivery ?? null
      const delivery = evolveDelivery(previous, event)
      if (delivery === null || delivery === previous) continue
      deliveries.set(event.deliveryId, { delivery, offset: row?.offset ?? offset })
      const since = failingSince(known, event, delivery)
      health.set(webhookId, since === known.failingSince ? known : { webhookId, failingSince: since })
      const replay = delivery.replayId === null ? undefined : replays.get(delivery.replayId)
      if (replay !== undefined) replays.set(replay.id, countDelivery(replay, previous, delivery))
    } else {
      const previous = replays.get(event.replayId) ?? null
      const replay = evolveReplay(previous, event)
      if (replay === null || replay === previous) continue
      replays.set(event.replayId, replay)
      // A store finds all rows of a webhook by its health row.
      health.set(webhookId, known)
    }
  }

  return [
    ...putChanged(tables.deliveries, before.deliveries, deliveries),
    ...putChanged(tables.replays, before.replays, replays),
    ...putChanged(tables.webhookHealth, before.health, health),
  ]
}

/** A sample does not count: it says nothing about deliveries of real mail. */
function failingSince(known: WebhookHealth, event: DeliveryEvent, { notification }: Delivery): Date | null {
  if (notification.type === 'sample') return known.failingSince
  if (event.type === 'DeliverySucceeded') return null
  if (event.type === 'DeliveryFailed') return known.failingSince ?? event.attemptedAt
  return known.failingSince
}

export interface AccountSliceKey {
  accountId: AccountId
  keyId?: KeyId | null
  webhookId?: WebhookId | null
  memberId?: MemberId | null
  domainId?: DomainId | null
  /** Of the domain, if it is about one. */
  name?: unknown
}

export async function accountSliceBefore(
  store: Pick<ViewStore, 'rows' | 'entriesWithRows'>,
  { accountId, keyId = null, webhookId = null, memberId = null, domainId = null, name }: AccountSliceKey,
): Promise<AccountSlice> {
  const find = <Row>(table: TableOf<Row>, key: string | null) =>
    key === null ? null : rowOf(store, table, { owner: null, key })
  const domainName = domainId !== null && typeof name === 'string' ? name : null
  const [account, key, webhook, member, domain, holder] = await Promise.all([
    find(tables.accounts, accountId),
    find(tables.apiKeys, keyId),
    find(tables.webhooks, webhookId),
    find(tables.members, memberId),
    find(tables.domains, domainId),
    domainName === null ? null : holdersOf(store, [domainName]).then(([found = null]) => found),
  ])
  return { account, key, webhook, member, domain, holder: holder?.id === domainId ? null : holder }
}

/** The domain that holds each name; null if there is none. */
export async function holdersOf(
  store: Pick<ViewStore, 'entriesWithRows'>,
  names: readonly string[],
): Promise<(Domain | null)[]> {
  const ranges = names.map((name) => keyRange(0, [name], { order: 'asc', after: null, limit: 1 }))
  const found = await store.entriesWithRows(tables.domainNames, tables.domains, ranges)
  return found.map(([first]) => (first?.row === REMOVED ? null : (first?.row ?? null)))
}

/** The changes that one event makes in the views of accounts, keys, members, webhooks and domains. */
export function projectAccountEvent(before: AccountSlice, logged: LoggedEvent<AccountEvent>): Change[] {
  const { event } = logged
  const after = evolveAccount(before, event)
  const changes: Change[] = []
  const entry = activityOf(logged, before, after)
  if (entry !== null) changes.push(put(tables.activity, { accountId: event.accountId, entry }, null))
  if (after.account !== null && after.account !== before.account) {
    changes.push(put(tables.accounts, after.account, before.account))
  }
  if (after.key !== null && after.key !== before.key) changes.push(put(tables.apiKeys, after.key, before.key))
  if (after.member !== null && after.member !== before.member) {
    changes.push(put(tables.members, after.member, before.member))
  }
  const previous = present(before.webhook)
  const webhook = present(after.webhook) ?? previous
  if (after.webhook !== before.webhook && webhook !== null) {
    const subject = { webhook, isRemoved: after.webhook === REMOVED }
    changes.push(put(tables.webhooks, subject, previous && { webhook: previous, isRemoved: false }))
  }
  for (const [old, next] of [
    [before.holder, after.holder],
    [before.domain, after.domain],
  ] as const) {
    const domain = present(next) ?? present(old)
    if (next === old || domain === null) continue
    const known = present(old)
    const subject = { domain, isRemoved: next === REMOVED }
    changes.push(put(tables.domains, subject, known && { domain: known, isRemoved: false }))
  }
  return changes
}

export async function auditLogsBefore(store: Pick<ViewStore, 'rows'>, events: readonly AuditEvent[]) {
  const keys = events.map(({ logId }) => ({ owner: null, key: logId }))
  return rowsById(store, tables.auditLogs, keys, ({ id }) => id)
}

/** The changes that a run of events of one partition makes in the views of audit logs. */
export function projectAuditEvents(
  before: Awaited<ReturnType<typeof auditLogsBefore>>,
  events: readonly AuditEvent[],
): Change[] {
  const logs = new Map(before)
  const changes: Change[] = []
  for (const event of events) {
    const { logId } = event
    const previous = logs.get(logId) ?? null
    const { log, added, completed } = evolveAuditLog(previous, event)
    logs.set(logId, log)
    const { checkpoint } = log
    if (checkpoint !== null && checkpoint !== previous?.checkpoint) {
      changes.push(put(tables.checkpoints, { ...checkpoint, logId }, null))
    }
    for (const leaf of added) changes.push(put(tables.leaves, { ...leaf, logId }, null))
    for (const subtree of completed) changes.push(put(tables.subtrees, { ...subtree, logId }, null))
  }
  return [...putChanged(tables.auditLogs, before, logs), ...changes]
}
