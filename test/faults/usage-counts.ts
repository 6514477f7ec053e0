import type { ClickHouseClient } from '@clickhouse/client'
import { countedBy, USAGE_EVENTS } from '#libs/domain/usage/usage-events.js'
import { usageEventCodec } from '#libs/ports/event-log/cloud-event.js'
import type { EventLog, StoredRecord } from '#libs/ports/event-log/event-log.js'
import type { Target } from '#test/harness/client.js'
import { until } from '#test/harness/until.js'
import { COUNTED_TOPICS } from '#apps/analytics/event-rows.js'

/**
 * The number of events on the log by type, without duplicates of an event. Usage events may be recorded together, and
 * count each mail.
 */
export async function eventCountsOnLog(log: EventLog): Promise<Record<string, number>> {
  const counts: Record<string, number> = {}
  const add = (type: string, count = 1) => (counts[type] = (counts[type] ?? 0) + count)
  const ids = new Set<string>()
  for (const topic of COUNTED_TOPICS) {
    const { partitions } = await log.topology(topic)
    for (const range of partitions) {
      for await (const records of log.read(range)) {
        for (const record of records) {
          const { ce_type: type = '', ce_id: id = '' } = record.headers
          if (ids.has(id)) continue
          ids.add(id)
          if (topic === 'usage-events') for (const each of usageIn(record)) add(each.type, each.count)
          else add(type)
        }
      }
    }
  }
  return counts
}

/** The types of the events in a record, and how many mails each counts. */
function usageIn(record: StoredRecord): { type: string; count: number }[] {
  const decoded = usageEventCodec.decode(record)
  if (decoded.kind !== 'event') throw new Error(`a record is ${decoded.kind}`)
  const { event } = decoded.recorded
  return (event.type === 'UsageRecorded' ? event.events : [event]).map((each) => ({
    type: `mayfly.${USAGE_EVENTS[each.type].name}`,
    count: countedBy(each),
  }))
}

/** Event types on the log by table and type in ClickHouse. */
const TYPES: Readonly<Record<string, string>> = {
  'requests/': 'mayfly.usage.api-request-served',
  'mail_events/accepted': 'mayfly.usage.mail-accepted',
  'mail_events/refused': 'mayfly.usage.mail-refused',
  'mail_events/shown': 'mayfly.usage.message-shown',
  'mail_events/read': 'mayfly.usage.message-read',
  'inbox_events/inbox.created': 'mayfly.inbox.created',
  'inbox_events/inbox.expired': 'mayfly.inbox.expired',
  'inbox_events/inbox.deleted': 'mayfly.inbox.deleted',
  'inbox_events/message.received': 'mayfly.inbox.message-received',
  'inbox_events/message.deleted': 'mayfly.inbox.message-deleted',
  'webhook_events/requested': 'mayfly.webhook.delivery-requested',
  'webhook_events/succeeded': 'mayfly.webhook.delivery-succeeded',
  'webhook_events/failed': 'mayfly.webhook.delivery-failed',
  'webhook_events/abandoned': 'mayfly.webhook.delivery-abandoned',
}

/** The number of rows in ClickHouse by event type. */
export async function rowCounts(client: ClickHouseClient): Promise<Record<string, number>> {
  const tables = ['mail_events', 'inbox_events', 'webhook_events'].map(
    (table) =>
      `SELECT concat('${table}/', type) AS name, toFloat64(count()) AS n FROM ${table} GROUP BY name`,
  )
  const rows = await rowsOf<{ name: string; n: number }>(
    client,
    `SELECT 'requests/' AS name, toFloat64(count()) AS n FROM requests UNION ALL ${tables.join(' UNION ALL ')}`,
  )
  return Object.fromEntries(rows.map(({ name, n }): [string, number] => [TYPES[name] ?? name, n]))
}

export interface UsageTotals {
  requests: number
  inboxes: number
  mails: number
  refusals: number
}

/** The totals that follow from the events, if no request was answered 429. */
export function expectedTotals(onLog: Readonly<Record<string, number>>): UsageTotals {
  const of = (type: string) => onLog[`mayfly.${type}`] ?? 0
  return {
    requests: of('usage.api-request-served'),
    inboxes: of('inbox.created'),
    mails: of('inbox.message-received'),
    refusals: of('usage.mail-refused'),
  }
}

/** The totals of each table of figures, which must all be equal. */
export async function figureTotals(client: ClickHouseClient): Promise<UsageTotals[]> {
  const tables = ['usage_minute', 'usage_hour', 'usage_day']
  const sums = await Promise.all(
    tables.map((table) =>
      rowsOf<UsageTotals>(
        client,
        `SELECT toFloat64(sum(t.requests)) AS requests, toFloat64(sum(t.inboxes)) AS inboxes,
          toFloat64(sum(t.mails)) AS mails, toFloat64(sum(t.refusals)) AS refusals FROM ${table} AS t`,
      ),
    ),
  )
  return sums.flat()
}

async function rowsOf<Row>(client: ClickHouseClient, query: string): Promise<Row[]> {
  return (await client.query({ query, format: 'JSONEachRow' })).json<Row>()
}

/** Waits until analytics has processed the whole log, without making requests that are counted themselves. */
export async function untilAnalyticsCaughtUp(target: Pick<Target, 'url'>): Promise<void> {
  await until('analytics to catch up', async () => {
    const metrics = await (await fetch(`${target.url}/metrics`)).text()
    const lags = [...metrics.matchAll(/^mayfly_consumer_lag_records\{group="analytics".*\} (\d+)$/gm)]
    return lags.length > 0 && lags.every(([, lag]) => lag === '0')
  })
}
