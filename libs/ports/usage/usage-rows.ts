import type { Recorded } from '#libs/ports/event-log/cloud-event.js'
import type { InboxEvent } from '#libs/domain/inbox/events.js'
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
type UsageValue = string | number | boolean | readonly string[]

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

/** Where on the log an event is. */
interface Position {
  partition: number
  offset: number
}

type Column = (typeof USAGE_TABLES)[UsageTable][number]
/** What an event says of itself, by column; null if it lacks it. */
type Facts = { at: Date } & Partial<Record<Exclude<Column, 'at'>, UsageValue | null>>

/** What stands in a column of which an event says nothing; in all others an empty text does. */
const NOTHING: Partial<Record<Column, UsageValue>> = {
  ...{ bytes: 0, ms: 0, code: 0, attempt: 0, status: 0, latency_ms: 0 },
  labels: [],
}

function rowOf(
  table: UsageTable,
  { accountId, environment }: Recorded<unknown>,
  { partition, offset }: Position,
  facts: Facts,
): UsageRow {
  const known = { ...facts, at: facts.at.getTime(), account_id: accountId, environment, partition, offset }
  const columns: readonly Column[] = USAGE_TABLES[table]
  return { table, values: columns.map((column) => known[column] ?? NOTHING[column] ?? '') }
}

/** The rows of one event of the topic usage-events: of a request served one for each that the event stands for. */
export function usageRows(recorded: Recorded<UsageEvent>, position: Position): UsageRow[] {
  const { event } = recorded
  const count = event.type === 'ApiRequestServed' ? event.count : 1
  return Array<UsageRow>(count).fill(usageRow(recorded, position))
}

/** What each row of one event of the topic usage-events says. */
export function usageRow(recorded: Recorded<UsageEvent>, position: Position): UsageRow {
  const { event } = recorded
  const subject = { key_id: event.keyId, inbox_id: event.inboxId, labels: labelTexts(event.labels) }
  if (event.type !== 'ApiRequestServed') {
    return rowOf('mail_events', recorded, position, { ...subject, ...mailFacts(event) })
  }
  const { servedAt: at, method, route, status, isRefused: refused } = event
  const { durationMs, requestBytes, responseBytes } = event
  const sizes = { duration_ms: durationMs, request_bytes: requestBytes, response_bytes: responseBytes }
  return rowOf('requests', recorded, position, { at, ...subject, method, route, status, refused, ...sizes })
}

/** Clocks of two machines may differ: a latency is never below 0. */
function mailFacts(event: Exclude<UsageEvent, { type: 'ApiRequestServed' }>): Facts {
  switch (event.type) {
    case 'MailAccepted': {
      const { acceptedAt: at, acceptMs: ms, messageId, size: bytes, fingerprint } = event
      return { at, type: 'accepted', message_id: messageId, bytes, ms, fingerprint }
    }
    case 'MailRefused':
      return { at: event.refusedAt, type: 'refused', reason: event.reason, code: event.code }
    case 'MessageShown': {
      const { receivedAt, shownAt: at, messageId } = event
      return {
        at,
        type: 'shown',
        message_id: messageId,
        ms: Math.max(at.getTime() - receivedAt.getTime(), 0),
      }
    }
    case 'MessageRead': {
      const { receivedAt, readAt: at, messageId } = event
      return { at, type: 'read', message_id: messageId, ms: Math.max(at.getTime() - receivedAt.getTime(), 0) }
    }
  }
}

/**
 * One event's row of the topic inbox-events, counted for the key that created the inbox, whichever key caused it; a mail
 * for the key that its sender authenticated with, if there is one.
 */
export function inboxRow(recorded: Recorded<InboxEvent>, position: Position): UsageRow {
  const { event, keyId: causedBy } = recorded
  const inbox = event.type === 'InboxCreated' ? event : event.inbox
  const ofSender = event.type === 'MessageReceived' ? causedBy : null
  const attribution =
    inbox === null ? {} : { key_id: ofSender ?? inbox.keyId, labels: labelTexts(inbox.labels) }
  const facts = { inbox_id: event.inboxId, ...attribution, ...inboxFacts(event) }
  return rowOf('inbox_events', recorded, position, facts)
}

function inboxFacts(event: InboxEvent): Facts {
  switch (event.type) {
    case 'InboxCreated':
      return { at: event.createdAt, type: 'inbox.created' }
    case 'MessageReceived': {
      const { receivedAt: at, messageId, size: bytes } = event
      return { at, type: 'message.received', message_id: messageId, bytes }
    }
    case 'MessageDeleted':
      return { at: event.deletedAt, type: 'message.deleted', message_id: event.messageId }
    case 'InboxExpired':
      return { at: event.expiredAt, type: 'inbox.expired' }
    case 'InboxDeleted':
      return { at: event.deletedAt, type: 'inbox.deleted' }
  }
}

/** One event's row of the topic webhook-events. */
export function webhookRow(recorded: Recorded<WebhookEvent>, position: Position): UsageRow {
  const { event, time } = recorded
  const facts = { at: time, webhook_id: event.webhookId, ...webhookFacts(event) }
  return rowOf('webhook_events', recorded, position, facts)
}

/** Without `at`, the row has the time of its record. */
function webhookFacts(event: WebhookEvent): Partial<Facts> {
  switch (event.type) {
    case 'DeliveryRequested':
      return { at: event.requestedAt, type: 'requested', delivery_id: event.deliveryId }
    case 'DeliverySucceeded':
    case 'DeliveryFailed': {
      const { attemptedAt: at, deliveryId, attempt, status, latencyMs } = event
      const outcome =
        event.type === 'DeliverySucceeded' ? { type: 'succeeded' } : { type: 'failed', reason: event.error }
      return { at, delivery_id: deliveryId, attempt, status, latency_ms: latencyMs, ...outcome }
    }
    case 'DeliveryAbandoned': {
      const { abandonedAt: at, deliveryId, reason } = event
      return { at, type: 'abandoned', delivery_id: deliveryId, reason }
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
