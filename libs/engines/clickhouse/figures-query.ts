import {
  INTERVAL_MS,
  USAGE_INTERVALS,
  type UsageInterval,
  type UsageOwner,
  type UsageQuery,
  type UsageReportQuery,
} from '#libs/ports/usage/usage-store.js'
import { COUNTS, digestOf, QUANTILES, USAGE, USAGE_SOURCES } from './schema.js'

/*
 * The queries for usage figures. The text of a query contains no input of a client: it is passed as parameters.
 */

export interface BoundQuery {
  query: string
  query_params: Record<string, unknown>
}

const GROUP_COLUMN = { none: 'NULL', key: 'key_id', environment: 'environment' } as const
/** Bounds the time (in seconds) and memory of a query. Few queries come near them. */
export const QUERY_LIMITS =
  'SETTINGS max_execution_time = 10, max_memory_usage = 1000000000, output_format_json_quote_64bit_integers = 0'

/**
 * A row for each interval and group in which anything happened. If there are more rows than the limit, the query fails
 * with TOO_MANY_ROWS or returns one row more than the limit. ClickHouse does not hold the other rows in memory.
 */
export function figuresQuery(usageQuery: UsageQuery): BoundQuery {
  const { owner, from, to, interval, grouping, labels, limit } = usageQuery
  const params: Record<string, unknown> = { ...ownerParams(owner), ...labelParams(labels) }
  if (grouping.by === 'label') params.group = `${grouping.name}:`
  const needsEvents = grouping.by === 'label' || labels.length > 0
  const segments: Segment[] = needsEvents
    ? [{ source: 'raw', from: from.getTime(), to: to.getTime() }]
    : segmentsOf(from.getTime(), to.getTime(), interval)
  const parts = segments.flatMap((segment, index) => {
    params[`from${index}`] = segment.from
    params[`to${index}`] = segment.to
    return segment.source === 'raw'
      ? eventsParts(usageQuery, index)
      : [figuresPart(usageQuery, segment.source, index)]
  })
  const query = `SELECT toUnixTimestamp(time) AS at, grp,
      ${sumsOf('p')},
      quantilesTDigestMerge(${QUANTILES})(p.request_ms) AS requestMs,
      quantilesTDigestMerge(${QUANTILES})(p.visible_ms) AS visibleMs
    FROM (${parts.join(' UNION ALL ')}) AS p
    GROUP BY time, grp ORDER BY time, grp LIMIT ${limit + 1} ${QUERY_LIMITS}, max_rows_to_group_by = ${limit}`
  return { query, query_params: params }
}

/** Selects from a table of figures. The segment must be whole intervals of that table. */
function figuresPart(
  { owner, interval, grouping }: UsageQuery,
  source: 'minute' | 'hour' | 'day',
  index: number,
) {
  return `SELECT ${startOf(interval)}(t.time) AS time, ${groupOf(grouping)} AS grp, ${COUNTS.join(', ')},
      request_ms, visible_ms
    FROM usage_${source} AS t WHERE ${ownerClause(owner)}
      AND t.time >= fromUnixTimestamp64Milli({from${index}:Int64}) AND t.time < fromUnixTimestamp64Milli({to${index}:Int64})`
}

/** The function for the start of an interval, such as `toStartOfHour`. */
function startOf(interval: UsageInterval): string {
  return `toStartOf${interval.charAt(0).toUpperCase()}${interval.slice(1)}`
}

/** Selects from the tables of raw events. */
function eventsParts({ owner, interval, grouping, labels }: UsageQuery, index: number): string[] {
  return Object.entries(USAGE_SOURCES).map(([table, { where, values }]) => {
    // A count that the table lacks is 0. The name alone could refer to a column of the events.
    const sums = COUNTS.map((name) => `${values[name] ?? '0'} AS ${name}`)
    const digests = USAGE.latencies.map(
      (name) => `${values[name] ?? digestOf('toFloat32(0)', '0')} AS ${name}`,
    )
    return `SELECT ${startOf(interval)}(t.at) AS time, ${groupOf(grouping)} AS grp, ${[...sums, ...digests].join(', ')}
    FROM ${table} AS t WHERE ${ownerClause(owner)} AND ${where} AND ${spanClause(index)}${labelClause(labels)}
    GROUP BY time, grp`
  })
}

/** Selects the sums of all counts. */
export function sumsOf(alias: string): string {
  return COUNTS.map((count) => `toFloat64(sum(${alias}.${count})) AS ${count}`).join(', ')
}

function groupOf(grouping: UsageQuery['grouping']): string {
  if (grouping.by !== 'label') return `CAST(${GROUP_COLUMN[grouping.by]}, 'Nullable(String)')`
  const found = 'arrayFirstOrNull(label -> startsWith(label, {group:String}), t.labels)'
  return `CAST(substringUTF8(${found}, lengthUTF8({group:String}) + 1), 'Nullable(String)')`
}

/** Restricts a query to the rows of an owner. It is the first condition of every query. */
function ownerClause({ keyId }: UsageOwner): string {
  return `t.account_id = {account:String}${keyId === null ? '' : ' AND t.key_id = {key:String}'}`
}

function ownerParams({ accountId, keyId }: UsageOwner): Record<string, unknown> {
  return { account: accountId, ...(keyId === null ? {} : { key: keyId }) }
}

export function spanClause(index: number | ''): string {
  return `t.at >= fromUnixTimestamp64Milli({from${index}:Int64}) AND t.at < fromUnixTimestamp64Milli({to${index}:Int64})`
}

function labelClause(labels: UsageQuery['labels']): string {
  return labels.map((_, index) => ` AND has(t.labels, {label${index}:String})`).join('')
}

function labelParams(labels: UsageQuery['labels']): Record<string, unknown> {
  return Object.fromEntries(labels.map(([name, value], index) => [`label${index}`, `${name}:${value}`]))
}

/** A part of a time span, and the coarsest table that has exact figures of it. Milliseconds since 1970. */
interface Segment {
  source: 'raw' | 'minute' | 'hour' | 'day'
  from: number
  to: number
}

/**
 * Splits a span into consecutive segments, none of them coarser than the interval. Whole days, hours and minutes are read
 * from tables of figures, the remainders at both ends from raw events.
 */
function segmentsOf(from: number, to: number, interval: UsageInterval): Segment[] {
  if (from >= to) return []
  if (interval === 'second') return [{ source: 'raw', from, to }]
  const unit = INTERVAL_MS[interval]
  const [first, last] = [Math.ceil(from / unit) * unit, Math.floor(to / unit) * unit]
  const finer = USAGE_INTERVALS[USAGE_INTERVALS.indexOf(interval) - 1] ?? 'second'
  if (first >= last) return segmentsOf(from, to, finer)
  return [
    ...segmentsOf(from, first, finer),
    { source: interval, from: first, to: last },
    ...segmentsOf(last, to, finer),
  ]
}

/** Mails beyond the first with the same fingerprint. Those before version 2 of the tables have theirs in mail_events. */
const DUPLICATES = `toFloat64(countIf(t.fingerprint != '')
  - uniqExactIf((t.inbox_id, t.fingerprint), t.fingerprint != '')) AS duplicates`

/** One row about all events that have the labels: what a test run created, and how it went. */
export function reportQuery(report: UsageReportQuery): BoundQuery {
  const { where, params } = boundsOf(report)
  // The first time that each message was read.
  const firstReads = `SELECT message_id, min(t.ms) AS ms FROM mail_events AS t ${where} AND t.type = 'read' GROUP BY message_id`
  // A mail counts for the key of its sender, which may differ from the key of the inbox.
  const anyKey = boundsOf({ ...report, owner: { ...report.owner, keyId: null } }).where
  const inboxes = `SELECT countIf(t.type = 'inbox.created' AND ${ownerClause(report.owner)}) AS created,
      countIf(t.type = 'message.received') AS received
    FROM inbox_events AS t ${anyKey} GROUP BY t.inbox_id`
  const query = `SELECT r.requests, r.refused + m.refused AS refusals, i.inboxes, i.mails, i.bytes,
      i.duplicates + m.duplicates AS duplicates, f.read, m.visibleMs, f.firstReadMs, m.acceptMs,
      e.inboxesWithoutMail, i.firstMailAt, i.lastMailAt
    FROM
      (SELECT toFloat64(count()) AS requests, toFloat64(countIf(t.refused)) AS refused FROM requests AS t ${where}) AS r,
      (SELECT toFloat64(countIf(t.type = 'inbox.created')) AS inboxes,
        toFloat64(countIf(t.type = 'message.received')) AS mails,
        toFloat64(sumIf(t.bytes, t.type = 'message.received')) AS bytes, ${DUPLICATES},
        toFloat64(toUnixTimestamp64Milli(minIf(t.at, t.type = 'message.received'))) AS firstMailAt,
        toFloat64(toUnixTimestamp64Milli(maxIf(t.at, t.type = 'message.received'))) AS lastMailAt
        FROM inbox_events AS t ${where}) AS i,
      (SELECT toFloat64(countIf(t.type = 'refused')) AS refused,
        ${DUPLICATES},
        ${latencyOf('t.ms', "t.type = 'shown'")} AS visibleMs,
        ${latencyOf('t.ms', "t.type = 'accepted'")} AS acceptMs
        FROM mail_events AS t ${where}) AS m,
      (SELECT toFloat64(count()) AS read, ${latencyOf('ms', '1')} AS firstReadMs
        FROM (${firstReads})) AS f,
      (SELECT toFloat64(countIf(created > 0 AND received = 0)) AS inboxesWithoutMail FROM (${inboxes})) AS e
    ${QUERY_LIMITS}`
  return { query, query_params: params }
}

/** The quantiles and the maximum. */
function latencyOf(value: string, condition: string): string {
  return `arrayConcat(quantilesTDigestIf(${QUANTILES})(${value}, ${condition}), [maxIf(${value}, ${condition})])`
}

/** A row for each bucket of `widthMs` in which mail was received. */
export function timelineQuery(report: UsageReportQuery, widthMs: number): BoundQuery {
  const { where, params } = boundsOf(report)
  const query = `SELECT toFloat64(intDiv(toUnixTimestamp64Milli(t.at), ${widthMs}) * ${widthMs}) AS start,
      toFloat64(count()) AS mails, toFloat64(sum(t.bytes)) AS bytes
    FROM inbox_events AS t ${where} AND t.type = 'message.received'
    GROUP BY start ${QUERY_LIMITS}`
  return { query, query_params: params }
}

function boundsOf({ owner, from, to, labels }: UsageReportQuery) {
  return {
    where: `WHERE ${ownerClause(owner)} AND ${spanClause('')}${labelClause(labels)}`,
    params: { ...ownerParams(owner), ...labelParams(labels), from: from.getTime(), to: to.getTime() },
  }
}
