import type { Recorded } from '#libs/ports/event-log/cloud-event.js'
import type { InboxAttribution, InboxEvent } from '#libs/domain/inbox/events.js'
import type { KeyId } from '#libs/domain/ids/typeid.js'
import type { WebhookEvent } from '#libs/domain/webhook/webhook-events.js'
import type { UsageEvent, UsageLabels } from '#libs/domain/usage/usage-events.js'

/*
 * What usage figures keep of each event: one row, in one of four tables. Nothing sealed is among it, nor an address:
 * ids, times, sizes and labels, as they stand in clear on the log.
 */

/** Of each table the columns, in the order of a row's values. */
export const USAGE_TABLES = {
  requests: [
    ...['at', 'account_id', 'environment', 'key_id', 'method', 'route', 'status', 'refused', 'duration_ms'],
    ...['request_bytes', 'response_bytes', 'inbox_id', 'labels', 'partition', 'offset'],
  ],
  inbox_events: [
    ...['at', 'type', 'account_id', 'environment', 'key_id', 'inbox_id', 'message_id', 'bytes', 'labels'],
    ...['partition', 'offset'],
  ],
  mail_events: [
    ...['at', 'type', 'account_id', 'environment', 'key_id', 'inbox_id', 'message_id', 'bytes', 'ms'],
    ...['reason', 'code', 'fingerprint', 'labels', 'partition', 'offset'],
  ],
  webhook_events: [
    ...['at', 'type', 'account_id', 'environment', 'webhook_id', 'delivery_id', 'attempt', 'status'],
    ...['latency_ms', 'reason', 'partition', 'offset'],
  ],
} as const satisfies Record<string, readonly string[]>

export type UsageTable = keyof typeof USAGE_TABLES

/** Times are milliseconds since 1970; labels are `<name>:<value>`; what an event lacks is empty, or 0. */
export type UsageValue = string | number | boolean | readonly string[]

export interface UsageRow {
  table: UsageTable
  values: readonly UsageValue[]
}

/**
 * Rows of one table in writing: JSON arrays of their values, with commas in between. Those that wait to be written do so
 * in a few long texts, which burden the heap less than their many values.
 */
export interface EncodedRows {
  table: UsageTable
  count: number
  json: string
}

/** Rows in the order in which they are, by table. */
export function encodeRows(rows: readonly UsageRow[]): EncodedRows[] {
  return [...Map.groupBy(rows, ({ table }) => table)].map(([table, group]) => ({
    table,
    count: group.length,
    json: JSON.stringify(group.map(({ values }) => values)).slice(1, -1),
  }))
}

interface Place {
  partition: number
  offset: number
}

/** The rows of one event of the topic usage-events: of a request served one for each that the event stands for. */
export function usageRows(recorded: Recorded<UsageEvent>, place: Place): UsageRow[] {
  const { event } = recorded
  const count = event.type === 'ApiRequestServed' ? event.count : 1
  return Array<UsageRow>(count).fill(usageRow(recorded, place))
}

/** What each row of one event of the topic usage-events says. */
export function usageRow({ accountId, environment, event }: Recorded<UsageEvent>, place: Place): UsageRow {
  const { partition, offset } = place
  const labels = labelTexts(event.labels)
  if (event.type === 'ApiRequestServed') {
    const { keyId, method, route, status, isRefused, durationMs, requestBytes, responseBytes } = event
    return {
      table: 'requests',
      values: [
        ...[event.servedAt.getTime(), accountId, environment, keyId, method, route, status, isRefused],
        ...[durationMs, requestBytes, responseBytes, event.inboxId ?? '', labels, partition, offset],
      ],
    }
  }
  const { at, type, ms, bytes = 0, messageId = '', reason = '', code = 0, fingerprint = '' } = factsOf(event)
  return {
    table: 'mail_events',
    values: [
      ...[at.getTime(), type, accountId, environment, event.keyId, event.inboxId, messageId, bytes, ms],
      ...[reason, code, fingerprint, labels, partition, offset],
    ],
  }
}

interface MailFacts {
  at: Date
  type: 'accepted' | 'refused' | 'shown' | 'read'
  ms: number
  messageId?: string
  bytes?: number
  reason?: string
  code?: number
  fingerprint?: string
}

/** Clocks of two machines may differ: a latency is never below 0. */
function factsOf(event: Exclude<UsageEvent, { type: 'ApiRequestServed' }>): MailFacts {
  switch (event.type) {
    case 'MailAccepted': {
      const { acceptedAt: at, acceptMs: ms, messageId, size: bytes, fingerprint } = event
      return { at, type: 'accepted', ms, messageId, bytes, fingerprint: fingerprint ?? '' }
    }
    case 'MailRefused':
      return { at: event.refusedAt, type: 'refused', ms: 0, reason: event.reason, code: event.code }
    case 'MessageShown': {
      const { receivedAt, shownAt: at, messageId } = event
      return { at, type: 'shown', ms: sinceMs(receivedAt, at), messageId }
    }
    case 'MessageRead': {
      const { receivedAt, readAt: at, messageId } = event
      return { at, type: 'read', ms: sinceMs(receivedAt, at), messageId }
    }
  }
}

function sinceMs(before: Date, at: Date): number {
  return Math.max(at.getTime() - before.getTime(), 0)
}

/**
 * One event's row of the topic inbox-events, counted for the key that created the inbox, whichever key caused it; a mail
 * for the key that its sender authenticated with, if there is one.
 */
export function inboxRow(
  { accountId, environment, keyId: causedBy, event }: Recorded<InboxEvent>,
  { partition, offset }: Place,
): UsageRow {
  const { at, type, messageId = '', bytes = 0, inbox } = inboxFacts(event, causedBy)
  const { keyId = '', labels = {} } = inbox ?? {}
  return {
    table: 'inbox_events',
    values: [
      ...[at.getTime(), type, accountId, environment, keyId, event.inboxId, messageId, bytes],
      ...[labelTexts(labels), partition, offset],
    ],
  }
}

interface InboxFacts {
  at: Date
  type: string
  messageId?: string
  bytes?: number
  inbox: InboxAttribution | null
}

function inboxFacts(event: InboxEvent, causedBy: KeyId | null): InboxFacts {
  switch (event.type) {
    case 'InboxCreated': {
      const { createdAt: at, keyId, labels } = event
      return { at, type: 'inbox.created', inbox: { keyId, labels } }
    }
    case 'MessageReceived': {
      const { receivedAt: at, messageId, size: bytes, inbox } = event
      const counted = inbox === null ? null : { ...inbox, keyId: causedBy ?? inbox.keyId }
      return { at, type: 'message.received', messageId, bytes, inbox: counted }
    }
    case 'MessageDeleted': {
      const { deletedAt: at, messageId, inbox } = event
      return { at, type: 'message.deleted', messageId, inbox }
    }
    case 'InboxExpired':
      return { at: event.expiredAt, type: 'inbox.expired', inbox: event.inbox }
    case 'InboxDeleted':
      return { at: event.deletedAt, type: 'inbox.deleted', inbox: event.inbox }
  }
}

/** One event's row of the topic webhook-events. */
export function webhookRow(
  { accountId, environment, time, event }: Recorded<WebhookEvent>,
  { partition, offset }: Place,
): UsageRow {
  const facts = webhookFacts(event)
  const { at = time, type, deliveryId = '', attempt = 0, status = 0, latencyMs = 0, reason = '' } = facts
  return {
    table: 'webhook_events',
    values: [
      ...[at.getTime(), type, accountId, environment, event.webhookId, deliveryId, attempt, status],
      ...[latencyMs, reason, partition, offset],
    ],
  }
}

interface WebhookFacts {
  at?: Date
  type: string
  deliveryId?: string
  attempt?: number
  status?: number
  latencyMs?: number
  reason?: string
}

function webhookFacts(event: WebhookEvent): WebhookFacts {
  switch (event.type) {
    case 'DeliveryRequested':
      return { at: event.requestedAt, type: 'requested', deliveryId: event.deliveryId }
    case 'DeliverySucceeded':
    case 'DeliveryFailed': {
      const { attemptedAt: at, deliveryId, attempt, latencyMs } = event
      const outcome =
        event.type === 'DeliverySucceeded'
          ? ({ type: 'succeeded', status: event.status } as const)
          : ({ type: 'failed', status: event.status ?? 0, reason: event.error } as const)
      return { at, deliveryId, attempt, latencyMs, ...outcome }
    }
    case 'DeliveryAbandoned':
      return {
        at: event.abandonedAt,
        type: 'abandoned',
        deliveryId: event.deliveryId,
        reason: event.reason,
      }
    case 'ReplayRequested':
    case 'ReplayAdvanced':
    case 'ReplayCancelled':
      return { type: event.type }
  }
}

function labelTexts(labels: UsageLabels): string[] {
  return Object.entries(labels).map(([name, value]) => `${name}:${value}`)
}
