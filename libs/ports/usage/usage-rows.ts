import type { Recorded } from '#libs/ports/event-log/cloud-event.js'
import { INBOX_EVENTS, occurredAt, type InboxEvent } from '#libs/domain/inbox/events.js'
import type { WebhookEvent } from '#libs/domain/webhook/events.js'
import type { UsageEvent, UsageLabels, UsageTopicEvent } from '#libs/domain/usage/usage-events.js'

/*
 * The row that usage figures store for an event, in one of four tables. A row has what the log holds unencrypted: ids,
 * times, sizes and labels. It has nothing sealed and no address.
 */

/** The columns of each table, in the order of a row's values. */
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

/** Times are in milliseconds since 1970, labels are `<name>:<value>`. A value that the event lacks is empty, or 0. */
type UsageValue = string | number | boolean | readonly string[]

export interface UsageRow {
  table: UsageTable
  values: readonly UsageValue[]
}

/**
 * Rows of one table as JSON arrays of their values, separated by commas. Rows are encoded before they wait to be
 * written, because a few long strings burden the heap less than many values.
 */
export interface EncodedRows {
  table: UsageTable
  count: number
  json: string
}

/** Encodes rows by table. Rows of one table keep their order. */
export function encodeRows(rows: readonly UsageRow[]): EncodedRows[] {
  return [...Map.groupBy(rows, ({ table }) => table)].map(([table, group]) => ({
    table,
    count: group.length,
    json: JSON.stringify(group.map(({ values }) => values)).slice(1, -1),
  }))
}

/** The position of an event's record on the log. */
interface Position {
  partition: number
  offset: number
}

/** A value for every column of a table. */
type Columns<Table extends UsageTable> = Record<(typeof USAGE_TABLES)[Table][number], UsageValue>

function rowOf<Table extends UsageTable>(table: Table, row: Columns<Table>): UsageRow {
  const columns: readonly (keyof Columns<Table>)[] = USAGE_TABLES[table]
  const values: UsageValue[] = []
  for (const column of columns) values.push(row[column])
  return { table, values }
}

/** The rows of one event of the topic usage-events. An event that counts several requests has a row for each. */
export function usageRows(recorded: Recorded<UsageTopicEvent>, position: Position): UsageRow[] {
  const { event, ...about } = recorded
  const events = event.type === 'UsageRecorded' ? event.events : [event]
  return events.flatMap((each) => {
    const count = each.type === 'ApiRequestServed' ? each.count : 1
    return Array<UsageRow>(count).fill(usageRow({ ...about, event: each }, position))
  })
}

/** The row of one event of the topic usage-events. */
export function usageRow(
  { accountId, environment, event }: Recorded<UsageEvent>,
  { partition, offset }: Position,
): UsageRow {
  const labels = labelTexts(event.labels)
  if (event.type === 'ApiRequestServed') {
    return rowOf('requests', {
      at: event.servedAt.getTime(),
      account_id: accountId,
      environment,
      key_id: event.keyId,
      method: event.method,
      route: event.route,
      status: event.status,
      refused: event.isRefused,
      duration_ms: event.durationMs,
      request_bytes: event.requestBytes,
      response_bytes: event.responseBytes,
      inbox_id: event.inboxId ?? '',
      labels,
      partition,
      offset,
    })
  }
  const { at, type, messageId = '', bytes = 0, ms = 0, reason = '', code = 0, fingerprint } = mailFacts(event)
  return rowOf('mail_events', {
    at: at.getTime(),
    type,
    account_id: accountId,
    environment,
    key_id: event.keyId,
    inbox_id: event.inboxId,
    message_id: messageId,
    bytes,
    ms,
    reason,
    code,
    fingerprint: fingerprint ?? '',
    labels,
    partition,
    offset,
  })
}

interface MailFacts {
  at: Date
  type: 'accepted' | 'duplicated' | 'refused' | 'shown' | 'read'
  messageId?: string
  bytes?: number
  ms?: number
  reason?: string
  code?: number
  fingerprint?: string | null
}

function mailFacts(event: Exclude<UsageEvent, { type: 'ApiRequestServed' }>): MailFacts {
  switch (event.type) {
    case 'MailAccepted': {
      const { acceptedAt: at, acceptMs: ms, messageId, size: bytes, fingerprint, duplicateOf } = event
      const type = duplicateOf === null ? 'accepted' : 'duplicated'
      return { at, type, messageId, bytes, ms, fingerprint }
    }
    case 'MailRefused':
      return { at: event.refusedAt, type: 'refused', reason: event.reason, code: event.code }
    case 'MessageShown': {
      const { receivedAt, shownAt: at, messageId } = event
      return { at, type: 'shown', messageId, ms: latencyMs(receivedAt, at) }
    }
    case 'MessageRead': {
      const { receivedAt, readAt: at, messageId } = event
      return { at, type: 'read', messageId, ms: latencyMs(receivedAt, at) }
    }
  }
}

/** Never negative, although the clocks of two machines may differ. */
function latencyMs(from: Date, to: Date): number {
  return Math.max(to.getTime() - from.getTime(), 0)
}

/**
 * The row of one event of the topic inbox-events. It counts for the key that created the inbox, even if another key
 * caused the event. A mail counts for the key that its sender authenticated with, if there is one.
 */
export function inboxRow(
  { accountId, environment, keyId, event }: Recorded<InboxEvent>,
  { partition, offset }: Position,
): UsageRow {
  const inbox = event.type === 'InboxCreated' ? event : event.inbox
  const senderKeyId = event.type === 'MessageReceived' ? keyId : null
  return rowOf('inbox_events', {
    at: occurredAt(event).getTime(),
    type: INBOX_EVENTS[event.type].publicName,
    account_id: accountId,
    environment,
    key_id: inbox === null ? '' : (senderKeyId ?? inbox.keyId),
    inbox_id: event.inboxId,
    message_id: 'messageId' in event ? event.messageId : '',
    bytes: 'size' in event ? event.size : 0,
    labels: inbox === null ? [] : labelTexts(inbox.labels),
    partition,
    offset,
  })
}

/** The row of one event of the topic webhook-events. */
export function webhookRow(
  { accountId, environment, time, event }: Recorded<WebhookEvent>,
  { partition, offset }: Position,
): UsageRow {
  const {
    at = time,
    type,
    deliveryId = '',
    attempt = 0,
    status,
    latencyMs = 0,
    reason = '',
  } = webhookFacts(event)
  return rowOf('webhook_events', {
    at: at.getTime(),
    type,
    account_id: accountId,
    environment,
    webhook_id: event.webhookId,
    delivery_id: deliveryId,
    attempt,
    status: status ?? 0,
    latency_ms: latencyMs,
    reason,
    partition,
    offset,
  })
}

interface WebhookFacts {
  /** If absent, the row has the time of the record. */
  at?: Date
  type: string
  deliveryId?: string
  attempt?: number
  status?: number | null
  latencyMs?: number
  reason?: string
}

function webhookFacts(event: WebhookEvent): WebhookFacts {
  switch (event.type) {
    case 'DeliveryRequested':
      return { at: event.requestedAt, type: 'requested', deliveryId: event.deliveryId }
    case 'DeliverySucceeded':
    case 'DeliveryFailed': {
      const { attemptedAt: at, deliveryId, attempt, status, latencyMs } = event
      const outcome =
        event.type === 'DeliverySucceeded' ? { type: 'succeeded' } : { type: 'failed', reason: event.error }
      return { at, deliveryId, attempt, status, latencyMs, ...outcome }
    }
    case 'DeliveryAbandoned': {
      const { abandonedAt: at, deliveryId, reason } = event
      return { at, type: 'abandoned', deliveryId, reason }
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
