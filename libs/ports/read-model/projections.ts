import { MAX_RETENTION } from '#libs/domain/account/access.js'
import { evolve as evolveAccount, type AccountSlice } from '#libs/domain/account/account.js'
import type { AccountEvent } from '#libs/domain/account/events.js'
import type {
  AccountId,
  DeliveryId,
  InboxId,
  KeyId,
  MessageId,
  ReplayId,
  WebhookId,
} from '#libs/domain/ids/typeid.js'
import type { InboxEvent, MessageReceived } from '#libs/domain/inbox/events.js'
import { evolve, type ActiveInbox } from '#libs/domain/inbox/inbox.js'
import { evolve as evolveDelivery, type Delivery } from '#libs/domain/webhook/delivery.js'
import type { DeliveryEvent, WebhookEvent } from '#libs/domain/webhook/events.js'
import { countDelivery, evolve as evolveReplay, type Replay } from '#libs/domain/webhook/replay.js'
import { REMOVED, type Webhook } from '#libs/domain/webhook/webhook.js'
import { put, removeOwned } from './table.js'
import {
  accounts,
  apiKeys,
  deliveries as deliveryTable,
  deliveryKey,
  history as historyTable,
  inboxes as inboxTable,
  messageKey,
  messages as messageTable,
  replayKey,
  replays as replayTable,
  webhookHealth,
  webhooks,
} from './tables.js'
import type { Change, RowKey, TableOf, ViewStore } from './view-store.js'
import {
  historyEntry,
  type DeliveryRow,
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
export interface InboxRows {
  inboxes: ReadonlyMap<InboxId, InboxRow>
  messages: ReadonlyMap<MessageId, MessageRow>
}

export interface InboxProjection {
  changes: Change[]
  /**
   * Messages that the events add and don't delete again. Their content must be written together with the changes, and
   * kept until `expiresAt`, the latest time at which their inbox can end: its expiry may still be moved there.
   */
  received: { event: MessageReceived; expiresAt: Date }[]
}

/** Reads the rows that are needed to project a run of events. */
export async function inboxRowsBefore(
  store: Pick<ViewStore, 'rows'>,
  events: readonly LoggedEvent<InboxEvent>[],
): Promise<InboxRows> {
  const inboxIds = new Set(events.map(({ event }) => event.inboxId))
  const messageKeys = new Map<MessageId, RowKey>()
  for (const { event } of events) {
    if ('messageId' in event) messageKeys.set(event.messageId, messageKey(event))
  }
  const [inboxes, messages] = await Promise.all([
    store.rows(
      inboxTable,
      [...inboxIds].map((key) => ({ owner: null, key })),
    ),
    store.rows(messageTable, [...messageKeys.values()]),
  ])
  return {
    inboxes: new Map(inboxes.flatMap((row) => (row === null ? [] : [[row.inbox.id, row]]))),
    messages: new Map(messages.flatMap((row) => (row === null ? [] : [[row.message.id, row]]))),
  }
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

  const changes: Change[] = []
  for (const [inboxId, row] of inboxes) {
    const { inbox } = row
    changes.push(put(inboxTable, row, before.inboxes.get(inboxId) ?? null))
    if (inbox.state !== 'active') {
      changes.push(removeOwned(messageTable, inbox.id, (message) => ({ inbox, row: message })))
    }
  }
  for (const [messageId, { inboxId, row }] of messages) {
    const inbox = activeInbox(inboxId)
    const previous = before.messages.get(messageId)
    if (inbox === null) continue
    changes.push(put(messageTable, { inbox, row }, previous === undefined ? null : { inbox, row: previous }))
  }
  for (const { inboxId, entry } of history) {
    const inbox = inboxes.get(inboxId)?.inbox
    if (inbox !== undefined) changes.push(put(historyTable, { inbox, entry }, null))
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

/** The rows of the views that a run of webhook events concerns, before that run. */
export interface WebhookRows {
  deliveries: ReadonlyMap<DeliveryId, DeliveryRow>
  replays: ReadonlyMap<ReplayId, Replay>
  health: ReadonlyMap<WebhookId, WebhookHealth>
}

/** An event and its offset in its partition of webhook-events. */
export interface LoggedWebhookEvent {
  offset: number
  event: WebhookEvent
}

/** Reads the rows that are needed to project a run of events. */
export async function webhookRowsBefore(
  store: Pick<ViewStore, 'rows'>,
  events: readonly LoggedWebhookEvent[],
): Promise<WebhookRows> {
  const webhookIds = new Set(events.map(({ event }) => event.webhookId))
  const [found, health] = await Promise.all([
    store.rows(deliveryTable, deliveryKeysOf(events)),
    store.rows(
      webhookHealth,
      [...webhookIds].map((key) => ({ owner: null, key })),
    ),
  ])
  const deliveries = found.filter((row) => row !== null)
  const replayKeys = replayKeysOf(events, deliveries)
  const replays = replayKeys.length === 0 ? [] : await store.rows(replayTable, replayKeys)
  return {
    deliveries: new Map(deliveries.map((row) => [row.delivery.id, row])),
    replays: new Map(replays.flatMap((row) => (row === null ? [] : [[row.id, row]]))),
    health: new Map(health.flatMap((row) => (row === null ? [] : [[row.webhookId, row]]))),
  }
}

function deliveryKeysOf(events: readonly LoggedWebhookEvent[]): RowKey[] {
  const found = new Map<DeliveryId, RowKey>()
  for (const { event } of events) {
    if ('deliveryId' in event) found.set(event.deliveryId, deliveryKey(event))
  }
  return [...found.values()]
}

/** The replays that the events are about, and those that the deliveries belong to. */
function replayKeysOf(events: readonly LoggedWebhookEvent[], deliveries: readonly DeliveryRow[]): RowKey[] {
  const found = new Map<ReplayId, RowKey>()
  for (const each of [...events.map(({ event }) => event), ...deliveries.map(({ delivery }) => delivery)]) {
    const replayId = 'replayId' in each ? each.replayId : null
    if (replayId !== null) found.set(replayId, replayKey({ webhookId: each.webhookId, replayId }))
  }
  return [...found.values()]
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
      health.set(webhookId, { webhookId, failingSince: failingSince(known, event, delivery) })
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

  const changes: Change[] = []
  for (const [id, row] of deliveries) {
    const previous = before.deliveries.get(id) ?? null
    if (row !== previous) changes.push(put(deliveryTable, row, previous))
  }
  for (const [id, replay] of replays) {
    const previous = before.replays.get(id) ?? null
    if (replay !== previous) changes.push(put(replayTable, replay, previous))
  }
  for (const [id, each] of health) {
    if (isChanged(each, before.health.get(id))) changes.push(put(webhookHealth, each, null))
  }
  return changes
}

/** A sample does not count: it says nothing about deliveries of real mail. */
function failingSince(known: WebhookHealth, event: DeliveryEvent, { notification }: Delivery): Date | null {
  if (notification.type === 'sample') return known.failingSince
  if (event.type === 'DeliverySucceeded') return null
  if (event.type === 'DeliveryFailed') return known.failingSince ?? event.attemptedAt
  return known.failingSince
}

function isChanged(health: WebhookHealth, before: WebhookHealth | undefined): boolean {
  return before === undefined || health.failingSince?.getTime() !== before.failingSince?.getTime()
}

/** What an event of an account is about. */
export interface AccountSliceKey {
  accountId: AccountId
  keyId?: KeyId | null
  webhookId?: WebhookId | null
}

/** Reads the rows that an event of an account is applied to. */
export async function accountSliceBefore(
  store: Pick<ViewStore, 'rows'>,
  { accountId, keyId = null, webhookId = null }: AccountSliceKey,
): Promise<AccountSlice> {
  const row = async <Row>(table: TableOf<Row>, key: string | null) =>
    key === null ? null : ((await store.rows(table, [{ owner: null, key }]))[0] ?? null)
  const [account, key, webhook] = await Promise.all([
    row(accounts, accountId),
    row(apiKeys, keyId),
    row(webhooks, webhookId),
  ])
  return { account, key, webhook }
}

/** The changes that one event makes in the views of accounts, keys and webhooks. */
export function projectAccountEvent(before: AccountSlice, event: AccountEvent): Change[] {
  const after = evolveAccount(before, event)
  const changes: Change[] = []
  if (after.account !== null && after.account !== before.account) {
    changes.push(put(accounts, after.account, before.account))
  }
  if (after.key !== null && after.key !== before.key) changes.push(put(apiKeys, after.key, before.key))
  const previous = webhookIn(before)
  const webhook = webhookIn(after) ?? previous
  if (after.webhook !== before.webhook && webhook !== null) {
    const subject = { webhook, isRemoved: after.webhook === REMOVED }
    changes.push(put(webhooks, subject, previous && { webhook: previous, isRemoved: false }))
  }
  return changes
}

function webhookIn({ webhook }: AccountSlice): Webhook | null {
  return webhook === REMOVED ? null : webhook
}
