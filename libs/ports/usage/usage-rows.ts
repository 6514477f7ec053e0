import type { Recorded } from '#libs/ports/event-log/cloud-event.js'
import { INBOX_EVENTS, occurredAt, type InboxEvent } from '#libs/domain/inbox/events.js'
import type { WebhookEvent } from '#libs/domain/webhook/events.js'
import { sinceReceived, type UsageLabels, type UsageTopicEvent } from '#libs/domain/usage/usage-events.js'

/*
 * The row that usage figures store for an event, in one of four tables. A row has what the log holds unencrypted: ids,
 * times, sizes and labels. It has nothing sealed and no address.
 */

const NO_LABELS: readonly string[] = []

/**
 * The empty row of each table: its columns, in the order of a row's values. Times are in milliseconds since 1970, labels
 * are `<name>:<value>`. A value that an event lacks is empty, or 0.
 */
const EMPTY_ROWS = {
  requests: {
    ...{
      at: 0,
      account_id: '',
      environment: '',
      key_id: '',
      method: '',
      route: '',
      status: 0,
      refused: false,
    },
    ...{ duration_ms: 0, request_bytes: 0, response_bytes: 0, inbox_id: '', labels: NO_LABELS },
    ...{ partition: 0, offset: 0 },
  },
  inbox_events: {
    ...{ at: 0, type: '', account_id: '', environment: '', key_id: '', inbox_id: '', message_id: '' },
    ...{ bytes: 0, fingerprint: '', labels: NO_LABELS, partition: 0, offset: 0 },
  },
  mail_events: {
    ...{ at: 0, type: '', account_id: '', environment: '', key_id: '', inbox_id: '', message_id: '' },
    ...{ bytes: 0, ms: 0, reason: '', code: 0, fingerprint: '', labels: NO_LABELS, partition: 0, offset: 0 },
  },
  webhook_events: {
    ...{ at: 0, type: '', account_id: '', environment: '', webhook_id: '', delivery_id: '', attempt: 0 },
    ...{ status: 0, latency_ms: 0, reason: '', partition: 0, offset: 0 },
  },
}

export type UsageTable = keyof typeof EMPTY_ROWS

/** The columns of each table, in the order of a row's values. */
export const USAGE_TABLES: Readonly<Record<UsageTable, readonly string[]>> = {
  requests: Object.keys(EMPTY_ROWS.requests),
  inbox_events: Object.keys(EMPTY_ROWS.inbox_events),
  mail_events: Object.keys(EMPTY_ROWS.mail_events),
  webhook_events: Object.keys(EMPTY_ROWS.webhook_events),
}

type UsageValue = string | number | boolean | readonly string[]

export interface UsageRow {
  table: UsageTable
  /** In the order of the columns. */
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

function rowOf<Table extends UsageTable>(
  table: Table,
  { accountId, environment }: Pick<Recorded<unknown>, 'accountId' | 'environment'>,
  { partition, offset }: Position,
  values: Partial<(typeof EMPTY_ROWS)[Table]>,
): UsageRow {
  const owner = { account_id: accountId, environment }
  return { table, values: Object.values({ ...EMPTY_ROWS[table], ...owner, ...values, partition, offset }) }
}

/** The rows of one event of the topic usage-events. An event that counts several requests or mails has a row for each. */
export function usageRows(recorded: Recorded<UsageTopicEvent>, position: Position): UsageRow[] {
  const { event } = recorded
  const events = event.type === 'UsageRecorded' ? event.events : [event]
  return events.flatMap((each) => {
    const row = <Table extends UsageTable>(table: Table, values: Partial<(typeof EMPTY_ROWS)[Table]>) =>
      rowOf(table, recorded, position, { key_id: each.keyId, labels: labelTexts(each.labels), ...values })
    switch (each.type) {
      case 'ApiRequestServed': {
        const { method, route, status, isRefused: refused, durationMs: duration_ms } = each
        const request = row('requests', {
          ...{ at: each.servedAt.getTime(), method, route, status, refused, duration_ms },
          ...{ request_bytes: each.requestBytes, response_bytes: each.responseBytes },
          inbox_id: each.inboxId ?? '',
        })
        return Array<UsageRow>(each.count).fill(request)
      }
      case 'MailAccepted': {
        return each.ms.map((ms) => row('mail_events', { at: each.at.getTime(), type: 'accepted', ms }))
      }
      case 'MailRefused': {
        const { inboxId: inbox_id, reason, code } = each
        return row('mail_events', { at: each.refusedAt.getTime(), type: 'refused', inbox_id, reason, code })
      }
      case 'MessageShown': {
        return each.ms.map((ms) => row('mail_events', { at: each.at.getTime(), type: 'shown', ms }))
      }
      case 'MessageRead': {
        const { inboxId: inbox_id, messageId: message_id, receivedAt, readAt } = each
        const ms = sinceReceived(receivedAt, readAt)
        return row('mail_events', { at: readAt.getTime(), type: 'read', inbox_id, message_id, ms })
      }
    }
  })
}

/**
 * The row of one event of the topic inbox-events. It counts for the key that created the inbox, even if another key
 * caused the event. A mail counts for the key that its sender authenticated with, if there is one.
 */
export function inboxRow(recorded: Recorded<InboxEvent>, position: Position): UsageRow {
  const { event, keyId } = recorded
  const inbox = event.type === 'InboxCreated' ? event : event.inbox
  const senderKeyId = event.type === 'MessageReceived' ? keyId : null
  return rowOf('inbox_events', recorded, position, {
    at: occurredAt(event).getTime(),
    type: INBOX_EVENTS[event.type].publicName,
    key_id: inbox === null ? '' : (senderKeyId ?? inbox.keyId),
    inbox_id: event.inboxId,
    message_id: 'messageId' in event ? event.messageId : '',
    bytes: 'size' in event ? event.size : 0,
    fingerprint: 'fingerprint' in event ? (event.fingerprint ?? '') : '',
    labels: inbox === null ? [] : labelTexts(inbox.labels),
  })
}

/** The row of one event of the topic webhook-events. */
export function webhookRow(recorded: Recorded<WebhookEvent>, position: Position): UsageRow {
  const { time, event } = recorded
  return rowOf('webhook_events', recorded, position, {
    ...{ at: time.getTime(), webhook_id: event.webhookId },
    ...('deliveryId' in event ? { delivery_id: event.deliveryId } : {}),
    ...webhookValues(event),
  })
}

function webhookValues(event: WebhookEvent): Partial<(typeof EMPTY_ROWS)['webhook_events']> {
  switch (event.type) {
    case 'DeliveryRequested':
      return { at: event.requestedAt.getTime(), type: 'requested' }
    case 'DeliverySucceeded':
    case 'DeliveryFailed': {
      const { attemptedAt, attempt, status, latencyMs: latency_ms } = event
      const outcome =
        event.type === 'DeliverySucceeded' ? { type: 'succeeded' } : { type: 'failed', reason: event.error }
      return { at: attemptedAt.getTime(), attempt, status: status ?? 0, latency_ms, ...outcome }
    }
    case 'DeliveryAbandoned':
      return { at: event.abandonedAt.getTime(), type: 'abandoned', reason: event.reason }
    case 'ReplayRequested':
    case 'ReplayAdvanced':
    case 'ReplayCancelled':
      return { type: event.type }
  }
}

function labelTexts(labels: UsageLabels): string[] {
  return Object.entries(labels).map(([name, value]) => `${name}:${value}`)
}
